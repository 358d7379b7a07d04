#include "simulate/run/read_ahead.h"

#include <utility>

namespace neap::whatif {

namespace {
constexpr std::size_t batch_items = 256;
constexpr std::size_t most_batches = 8;
}  // namespace

ReadAhead::ReadAhead(std::unique_ptr<IncomingStream> source)
    : source_(std::move(source)),
      total_(source_->total()),
      passed_over_(source_->passed_over()),
      reader_([this](const std::stop_token& stop) { read(stop); }) {}

ReadAhead::Batch ReadAhead::read_batch() {
  Batch batch;
  batch.items.reserve(batch_items);
  while (batch.items.size() < batch_items) {
    Item item;
    auto more = source_->next(item.incoming);
    if (!more || !*more) {
      batch.passed_over = source_->passed_over();
      batch.end = std::move(more);
      break;
    }
    item.passed_over = source_->passed_over();
    batch.items.push_back(std::move(item));
  }
  return batch;
}

void ReadAhead::read(const std::stop_token& stop) {
  bool ended = false;
  while (!ended && !stop.stop_requested()) {
    Batch batch = read_batch();
    ended = batch.end.has_value();
    std::unique_lock lock(mutex_);
    if (!changed_.wait(lock, stop, [this] { return ready_.size() < most_batches; })) return;
    ready_.push_back(std::move(batch));
    changed_.notify_all();
  }
}

void ReadAhead::take_batch() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !ready_.empty(); });
  batch_ = std::move(ready_.front());
  ready_.pop_front();
  given_ = 0;
  changed_.notify_all();
}

Result<bool> ReadAhead::next(Incoming& into) {
  while (given_ == batch_.items.size()) {
    if (batch_.end) {
      passed_over_ = batch_.passed_over;
      return *batch_.end;
    }
    take_batch();
  }
  Item& item = batch_.items[given_++];
  passed_over_ = item.passed_over;
  into = std::move(item.incoming);
  return true;
}

}  // namespace neap::whatif
