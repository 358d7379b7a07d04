#include "simulate/run/source.h"

#include <algorithm>
#include <array>
#include <deque>
#include <filesystem>
#include <utility>

#include "config/problem.h"
#include "simulate/run/list_stream.h"
#include "trace/jobs.h"
#include "trace/openb.h"
#include "trace/rates.h"
#include "trace/read_all.h"
#include "trace/requests.h"

namespace neap::whatif {

namespace {

using trace::Arrival;
using trace::JobArrival;
using trace::RateChange;
using trace::RequestArrival;

tl::unexpected<Error> out_of_order(const std::string& file, std::int64_t row) {
  return fail(ErrorCode::invalid_argument,
              "row " + std::to_string(row) +
                  " is earlier than the one before it; expected the order of time",
              file);
}

// Rows that come in the order of time, one for one.
template <class Reader, class Row, class Convert>
class RowStream : public ArrivalStream {
 public:
  RowStream(trace::Bytes bytes, Convert convert)
      : name_(bytes->name()), reader_(std::move(bytes)), convert_(std::move(convert)) {}
  [[nodiscard]] Result<bool> next(Arrival& into) override {
    Row row;
    const auto more = reader_.next(row);
    if (!more || !*more) return more;
    into = convert_(std::move(row));
    ++rows_;
    if (into.at < last_) return out_of_order(name_, rows_);
    last_ = into.at;
    return true;
  }

 private:
  std::string name_;
  Reader reader_;
  Convert convert_;
  std::int64_t rows_ = 0;
  Time last_{INT64_MIN};
};

template <class Reader, class Row, class Convert>
std::unique_ptr<ArrivalStream> stream_rows(trace::Bytes bytes, Convert convert) {
  return std::make_unique<RowStream<Reader, Row, Convert>>(std::move(bytes), std::move(convert));
}

Result<std::unique_ptr<ArrivalStream>> jobs_of(Result<std::vector<trace::Job>> rows,
                                               std::int64_t passed_over) {
  if (!rows) return tl::unexpected(rows.error());
  std::vector<Arrival> arrivals;
  arrivals.reserve(rows->size());
  for (trace::Job& row : *rows) {
    JobArrival job;
    job.name = row.name.empty() ? "job-" + std::to_string(arrivals.size()) : "job-" + row.name;
    job.gpus = row.gpus;
    job.duration = row.duration;
    job.group = std::move(row.group);
    job.deadline = row.deadline;
    arrivals.push_back({row.submitted, std::move(job)});
  }
  return std::make_unique<ListStream>(std::move(arrivals), passed_over);
}

Result<std::unique_ptr<ArrivalStream>> chronus_jobs(trace::Bytes bytes) {
  trace::ChronusReader reader(std::move(bytes), minutes(1));
  std::vector<trace::Job> jobs;
  trace::Job job;
  while (true) {
    const auto more = reader.next(job);
    if (!more) return tl::unexpected(more.error());
    if (!*more) break;
    jobs.push_back(job);
  }
  return jobs_of(std::move(jobs), reader.passed_over());
}

Result<std::unique_ptr<ArrivalStream>> openb_pods(trace::Bytes bytes) {
  const std::string name = bytes->name();
  auto rows = trace::read_all<trace::OpenbPod>(trace::OpenbPodReader(std::move(bytes)));
  if (!rows) return tl::unexpected(rows.error());
  std::vector<Arrival> arrivals;
  std::int64_t passed_over = 0;
  for (trace::OpenbPod& pod : *rows) {
    if (!pod.created_s || !pod.deleted_s || *pod.deleted_s < *pod.created_s) {
      return fail(ErrorCode::invalid_argument,
                  "pod " + config::in_quotes(pod.name) +
                      " needs a creation_time and a later deletion_time to be replayed",
                  name + ": deletion_time");
    }
    JobArrival job;
    job.name = std::move(pod.name);
    job.gpus = pod.gpus;
    job.each = pod.each;
    job.cpu_milli = pod.cpu_milli;
    job.memory = pod.memory;
    job.models = std::move(pod.models);
    job.duration = seconds(*pod.deleted_s - *pod.created_s);
    if (job.gpus == 0) {
      ++passed_over;
      continue;
    }
    arrivals.push_back({Time(0) + seconds(*pod.created_s), std::move(job)});
  }
  return std::make_unique<ListStream>(std::move(arrivals), passed_over);
}

// Helios has no jobs, only how many devices were asked for in each minute. Where that rises a job
// of one device begins for each; where it falls, those that began first end.
Result<std::unique_ptr<ArrivalStream>> helios_demand(trace::Bytes bytes) {
  const std::string name = bytes->name();
  trace::HeliosReader reader(std::move(bytes));
  std::vector<Arrival> arrivals;
  std::deque<std::size_t> open;
  Time last{INT64_MIN};
  std::int64_t rows = 0;
  const auto close_one = [&](Time at) {
    auto& begun = arrivals[open.front()];
    std::get<JobArrival>(begun.what).duration = at - begun.at;
    open.pop_front();
  };
  trace::Occupancy row;
  while (true) {
    const auto more = reader.next(row);
    if (!more) return tl::unexpected(more.error());
    if (!*more) break;
    if (++rows; row.at < last) return out_of_order(name, rows);
    const auto demand =
        static_cast<std::size_t>(row.running_gpus) + static_cast<std::size_t>(row.pending_gpus);
    while (open.size() > demand) close_one(row.at);
    while (open.size() < demand) {
      if (arrivals.size() == trace::most_rows) {
        return fail(ErrorCode::too_large, "more jobs than this program takes");
      }
      open.push_back(arrivals.size());
      JobArrival job;
      job.name = "job-" + std::to_string(arrivals.size());
      arrivals.push_back({row.at, std::move(job)});
    }
    last = row.at;
  }
  while (!open.empty()) close_one(last + minutes(1));
  return std::make_unique<ListStream>(std::move(arrivals));
}

Result<std::unique_ptr<ArrivalStream>> servegen_rates(trace::Bytes bytes,
                                                      const std::string& service) {
  constexpr Micros window = minutes(10);
  const auto windows = trace::read_servegen(std::move(bytes));
  if (!windows) return tl::unexpected(windows.error());
  std::vector<Arrival> arrivals;
  for (const trace::RateWindow& row : *windows) {
    arrivals.push_back({row.from, RateChange{service, row.micro_per_second}});
  }
  if (!arrivals.empty()) arrivals.push_back({arrivals.back().at + window, RateChange{service, 0}});
  return std::make_unique<ListStream>(std::move(arrivals));
}

bool holds_all(std::string_view line, std::initializer_list<std::string_view> words) {
  return std::all_of(words.begin(), words.end(), [&](std::string_view word) {
    return line.find(word) != std::string_view::npos;
  });
}

std::optional<Format> format_of_front(std::string_view front) {
  constexpr std::size_t tar_magic = 257;
  if (front.starts_with("SQLite format 3")) return Format::journal;
  if (front.size() > tar_magic + 5 && front.substr(tar_magic, 5) == "ustar") {
    return Format::servegen;
  }
  if (front.starts_with("\xef\xbb\xbf")) front.remove_prefix(3);
  const std::string_view line = front.substr(0, front.find('\n'));
  if (line.starts_with('{')) {
    if (holds_all(line, {"\"neap_workload\""})) return Format::neap;
    if (holds_all(line, {"\"timestamp\"", "\"input_length\""})) return Format::mooncake;
    return {};
  }
  if (holds_all(line, {"num_gpu", "gpu_milli", "cpu_milli"})) return Format::openb;
  if (holds_all(line, {"job_id", "submit_time", "best_effort"})) return Format::chronus;
  if (holds_all(line, {"timestamp", "duration", "num_gpus"})) return Format::philly;
  if (holds_all(line, {"TIMESTAMP", "ContextTokens"})) return Format::azure;
  if (holds_all(line, {"running_gpu_num", "pending_gpu_num"})) return Format::helios;
  return {};
}

}  // namespace

const std::vector<std::string>& format_names() {
  static const std::vector<std::string> names = {"auto",     "neap",   "openb", "philly",
                                                 "chronus",  "helios", "azure", "mooncake",
                                                 "servegen", "journal"};
  return names;
}

std::optional<Format> format_named(std::string_view name) {
  const auto& names = format_names();
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return {};
  return static_cast<Format>(found - names.begin());
}

Result<Format> detect_format(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return Format::journal;
  auto bytes = trace::open_bytes(path);
  if (!bytes) return tl::unexpected(bytes.error());
  std::array<char, 4096> front{};
  std::size_t size = 0;
  while (size < front.size()) {
    const auto more = (*bytes)->read(std::span(front).subspan(size));
    if (!more) return tl::unexpected(more.error());
    if (*more == 0) break;
    size += *more;
  }
  if (size == 0) return fail(ErrorCode::invalid_argument, "is empty; expected a workload", path);
  if (const auto format = format_of_front({front.data(), size})) return *format;
  std::string known;
  for (std::size_t i = 1; i < format_names().size(); ++i) {
    known += (i == 1 ? "" : ", ") + format_names()[i];
  }
  return fail(ErrorCode::invalid_argument,
              "begins like no workload that is known (" + known + "); --format names one",
              path + ":1");
}

Result<std::unique_ptr<ArrivalStream>> open_arrivals(const std::string& path, Format format,
                                                     const std::string& service) {
  auto bytes = trace::open_bytes(path);
  if (!bytes) return tl::unexpected(bytes.error());
  const auto as_request = [service](trace::Request&& row) {
    return Arrival{row.at, RequestArrival{service, row.input_tokens, row.output_tokens}};
  };
  switch (format) {
    case Format::neap:
      return stream_rows<trace::WorkloadReader, Arrival>(
          std::move(*bytes), [](Arrival&& arrival) { return std::move(arrival); });
    case Format::openb:
      return openb_pods(std::move(*bytes));
    case Format::philly:
      return jobs_of(trace::read_all<trace::Job>(trace::PhillyReader(std::move(*bytes))), 0);
    case Format::chronus:
      return chronus_jobs(std::move(*bytes));
    case Format::helios:
      return helios_demand(std::move(*bytes));
    case Format::azure:
      return stream_rows<trace::AzureReader, trace::Request>(std::move(*bytes), as_request);
    case Format::mooncake:
      return stream_rows<trace::MooncakeReader, trace::Request>(std::move(*bytes), as_request);
    case Format::servegen:
      return servegen_rates(std::move(*bytes), service);
    case Format::automatic:
    case Format::journal:
      break;
  }
  return fail(ErrorCode::internal, "a journal is no stream of arrivals", path);
}

}  // namespace neap::whatif
