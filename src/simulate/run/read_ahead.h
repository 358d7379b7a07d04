// A workload that is read on a thread of its own, a little ahead of the run that it feeds: what
// comes out is the same, in the same order.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <vector>

#include "simulate/run/incoming.h"

namespace neap::whatif {

class ReadAhead : public IncomingStream {
 public:
  explicit ReadAhead(std::unique_ptr<IncomingStream> source);
  [[nodiscard]] Result<bool> next(Incoming& into) override;
  [[nodiscard]] std::optional<std::int64_t> total() const override { return total_; }
  // Of the rows up to the one that next() gave last, whatever has been read beyond it.
  [[nodiscard]] std::int64_t passed_over() const override { return passed_over_; }

 private:
  struct Item {
    Incoming incoming;
    std::int64_t passed_over = 0;
  };
  struct Batch {
    std::vector<Item> items;
    std::optional<Result<bool>> end;  // the answer after the last of them: no more, or an error
    std::int64_t passed_over = 0;     // at that end
  };

  void read(const std::stop_token& stop);
  [[nodiscard]] Batch read_batch();
  void take_batch();

  std::unique_ptr<IncomingStream> source_;  // of the reading thread
  const std::optional<std::int64_t> total_;
  std::int64_t passed_over_;
  Batch batch_;  // that is given out
  std::size_t given_ = 0;

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<Batch> ready_;
  std::jthread reader_;  // last: it ends before what it uses
};

}  // namespace neap::whatif
