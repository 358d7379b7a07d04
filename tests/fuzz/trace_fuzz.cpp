// Any bytes as a recorded trace: rows within their limits, or an error with text and a place. The
// first byte says which format.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>

#include "trace/jobs.h"
#include "trace/openb.h"
#include "trace/rates.h"
#include "trace/read_all.h"
#include "trace/requests.h"
#include "trace/tar.h"
#include "trace/workload.h"

namespace {

using namespace neap;
using namespace neap::trace;

constexpr std::size_t most_rows_read = 10'000;

void check(const Error& error) {
  if (error.message.empty()) std::abort();
  // Only a limit of the caller has no place.
  if (error.context.empty() && error.code != ErrorCode::too_large) std::abort();
}

template <class Row, class Reader, class Check>
void read_with(Bytes bytes, Check hold) {
  const auto rows = read_all<Row>(Reader(std::move(bytes)), most_rows_read);
  if (!rows) return check(rows.error());
  for (const Row& row : *rows) {
    if (!hold(row)) std::abort();
  }
}

bool is_share(std::int32_t gpus, MilliGpu each) {
  if (gpus == 0) return each.value == 0;
  return each.value >= 1 && each <= whole_device && (gpus == 1 || each == whole_device);
}

// What is read can be written, and is read the same.
void round_trip(Bytes bytes) {
  const auto rows = read_all<Arrival>(WorkloadReader(std::move(bytes)), most_rows_read);
  if (!rows) return check(rows.error());
  std::string text = workload_header() + "\n";
  for (const Arrival& arrival : *rows) text += line_of(arrival) + "\n";
  const auto again = read_all<Arrival>(WorkloadReader(bytes_of("again", text)), most_rows_read);
  if (!again || *again != *rows) std::abort();
}

void read_archive(Bytes bytes) {
  const auto windows = read_servegen(std::move(bytes), "");
  if (!windows) return check(windows.error());
  for (const RateWindow& window : *windows) {
    if (window.from.us < 0 || !(window.per_second >= 0)) std::abort();
  }
}

void read_order(Bytes bytes) {
  const auto order = read_openb_order(std::move(bytes), 42, {5, 2});
  if (!order) return check(order.error());
  if (order->nodes.size() != 2 || order->pods.empty()) std::abort();
  for (const std::uint32_t row : order->pods) {
    if (row >= 5) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  Bytes bytes = bytes_of("f", std::string(reinterpret_cast<const char*>(data) + 1, size - 1));
  const auto anything = [](const auto&) { return true; };
  switch (data[0] % 12) {
    case 0:
      read_with<OpenbNode, OpenbNodeReader>(std::move(bytes), [](const OpenbNode& node) {
        return node.gpus >= 0 && node.cpu_milli >= 0 && !node.name.empty();
      });
      break;
    case 1:
      read_with<OpenbPod, OpenbPodReader>(std::move(bytes), [](const OpenbPod& pod) {
        return is_share(pod.gpus, pod.each) && pod.memory.value >= 0;
      });
      break;
    case 2:
      read_with<OpenbClass, OpenbClassReader>(std::move(bytes), [](const OpenbClass& c) {
        return is_share(c.gpus, c.each) && c.weight >= 0 && c.weight <= 1;
      });
      break;
    case 3:
      read_order(std::move(bytes));
      break;
    case 4:
      read_with<Job, PhillyReader>(std::move(bytes), [](const Job& job) {
        return job.gpus >= 1 && job.duration.value >= 0;
      });
      break;
    case 5:
      read_with<Job, ChronusReader>(std::move(bytes), [](const Job& job) {
        return job.gpus >= 1 && job.duration.value >= 0 && job.submitted.us >= 0;
      });
      break;
    case 6:
      read_with<Request, AzureReader>(std::move(bytes), anything);
      break;
    case 7:
      read_with<Request, MooncakeReader>(std::move(bytes), anything);
      break;
    case 8:
      read_archive(std::move(bytes));
      break;
    case 9:
      read_with<Occupancy, HeliosReader>(std::move(bytes), anything);
      break;
    case 10:
      read_with<Rate, ServeGenReader>(std::move(bytes), anything);
      break;
    default:
      round_trip(std::move(bytes));
  }
  return 0;
}
