#include "simulate/run/recorded.h"

#include <algorithm>
#include <deque>
#include <filesystem>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/model/codec.h"
#include "core/model/events.h"
#include "journal/reader.h"

namespace neap::whatif {

namespace {

// What is known of one task while the records go by.
struct Work {
  std::size_t item = 0;  // of the list of arrivals
  Micros durable;        // work that is safe, of all allocations that have ended
  std::int32_t starts = 0;
  Time began;     // useful work of this allocation; never: it does not run
  Time captured;  // durable up to here
  bool finished = false;
};

class Recording {
 public:
  explicit Recording(std::vector<Incoming>& items) : items_(items) {}

  void note(Time now, const Event& event) {
    now_ = now;
    std::visit(*this, event);
  }
  void note(Time now, const Decision& decision) {
    now_ = now;
    if (const auto* admitted = std::get_if<TaskAdmitted>(&decision)) name_next(admitted->task);
    if (const auto* refused = std::get_if<TaskRefused>(&decision)) name_next(refused->task);
    if (const auto* placed = std::get_if<TaskPlaced>(&decision)) {
      if (work_.contains(placed->task)) task_of_[placed->allocation] = placed->task;
    }
  }

  // Fills in the durations; takes away jobs of which there is none.
  std::int64_t finish() {
    std::vector<bool> unknown(items_.size(), false);
    for (const std::size_t item : submitted_) unknown[item] = true;  // nothing followed it
    for (const auto& [task, work] : work_) {
      Micros done = work.durable;
      if (work.began != Time::never()) done += now_ - work.began;
      auto& job = std::get<JobIncoming>(items_[work.item].what);
      if (!work.finished && job.spec.work) done = std::max(done, *job.spec.work);
      job.duration = done;
      unknown[work.item] = done <= Micros(0);
    }
    std::int64_t passed_over = 0;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < items_.size(); ++i) {
      if (unknown[i]) {
        ++passed_over;
      } else if (kept++ != i) {
        items_[kept - 1] = std::move(items_[i]);
      }
    }
    items_.resize(kept);
    return passed_over;
  }

  void operator()(const TaskSubmitted& e) {
    submitted_.push_back(items_.size());
    JobIncoming job{e.spec, Micros(0), {}};
    if (e.spec.deadline) job.deadline = *e.spec.deadline - now_;
    job.spec.deadline.reset();
    add(std::move(job));
  }
  void operator()(const ServiceSubmitted& e) {
    concurrency_[e.spec.name] = std::max(1, e.spec.concurrency);
    add(ServiceIncoming{e.spec});
  }
  void operator()(const ServiceRemoveRequested& e) { add(ServiceLeaving{e.name}); }
  void operator()(const ServiceMeasured& e) {
    const auto known = concurrency_.find(e.name);
    if (!e.in_use || known == concurrency_.end()) return;
    const std::int64_t in_use_milli = *e.in_use * 1'000 / known->second;
    std::int64_t& last = last_load_[e.name];
    if (std::exchange(last, in_use_milli) != in_use_milli) add(LoadIncoming{e.name, in_use_milli});
  }
  void operator()(const TaskStarted& e) {
    if (Work* work = find(e.stamp.source)) {
      ++work->starts;
      work->began = work->captured = now_;
    }
  }
  void operator()(const StepsReported& e) {
    // What a restart takes until its first step is no work.
    Work* work = find(e.stamp.source);
    if (work == nullptr || work->starts < 2 || work->captured != work->began) return;
    work->began = work->captured = std::max(work->began, now_ - e.busy);
  }
  void operator()(const CheckpointDurable& e) {
    if (Work* work = find(e.stamp.source)) {
      work->captured = std::clamp(e.captured, std::min(work->began, now_), now_);
    }
  }
  void operator()(const StartFailed& e) { task_of_.erase(e.stamp.source); }
  void operator()(const TaskExited& e) {
    Work* work = find(e.stamp.source);
    if (work == nullptr || work->began == Time::never()) return;
    const JobIncoming& job = std::get<JobIncoming>(items_[work->item].what);
    const ContractSpec& contract = job.spec.contract;
    work->finished = e.signal == 0 && e.code == 0;
    const bool all_saved =
        e.signal == 0 && e.code == 75 && contract.signals && !contract.sdk && !contract.watch;
    work->durable += (work->finished || all_saved ? now_ : work->captured) - work->began;
    work->began = Time::never();
    task_of_.erase(e.stamp.source);
  }
  template <class Other>
  void operator()(const Other& /*says nothing of work*/) {}

 private:
  template <class What>
  void add(What what) {
    items_.push_back({now_, std::move(what)});
  }
  // Tasks are named by the decision that follows their submission: so the records may begin in
  // the middle of a pool's life.
  void name_next(TaskId task) {
    if (submitted_.empty()) return;
    Work work;
    work.item = submitted_.front();
    work.began = Time::never();
    work_.emplace(task, work);
    submitted_.pop_front();
  }
  Work* find(AllocationId allocation) {
    const auto task = task_of_.find(allocation);
    if (task == task_of_.end()) return nullptr;
    const auto work = work_.find(task->second);
    return work == work_.end() ? nullptr : &work->second;
  }

  std::vector<Incoming>& items_;
  Time now_;
  std::deque<std::size_t> submitted_;
  std::unordered_map<TaskId, Work> work_;  // order of the loop over it does not matter
  std::unordered_map<AllocationId, TaskId> task_of_;
  std::unordered_map<std::string, std::int32_t> concurrency_;
  std::unordered_map<std::string, std::int64_t> last_load_;
};

class RecordedStream : public IncomingStream {
 public:
  RecordedStream(std::vector<Incoming> items, std::int64_t passed_over)
      : items_(std::move(items)), passed_over_(passed_over) {
    jobs_ = std::count_if(items_.begin(), items_.end(), [](const Incoming& item) {
      return std::holds_alternative<JobIncoming>(item.what);
    });
  }
  [[nodiscard]] Result<bool> next(Incoming& into) override {
    if (at_ == items_.size()) return false;
    into = std::move(items_[at_++]);
    return true;
  }
  [[nodiscard]] std::optional<std::int64_t> total() const override { return jobs_; }
  [[nodiscard]] std::int64_t passed_over() const override { return passed_over_; }

 private:
  std::vector<Incoming> items_;
  std::size_t at_ = 0;
  std::int64_t jobs_ = 0;
  std::int64_t passed_over_;
};

Result<void> read_records(const std::string& path, Recording& recording) {
  auto reader = journal::Reader::open(path);
  if (!reader) return tl::unexpected(reader.error());
  const auto first = reader->first_sequence();
  if (!first) return tl::unexpected(first.error());
  auto cursor = reader->from(*first);
  if (!cursor) return tl::unexpected(cursor.error());
  while (true) {
    const auto record = cursor->next();
    if (!record) return tl::unexpected(record.error());
    if (!*record) return {};
    const journal::RecordView& view = **record;
    const std::string_view bytes(reinterpret_cast<const char*>(view.payload.data()),
                                 view.payload.size());
    if (view.kind == journal::RecordKind::event || view.kind == journal::RecordKind::aggregate) {
      const auto event = decode_event(bytes);
      if (!event) return tl::unexpected(event.error());
      recording.note(view.time, *event);
    } else {
      const auto decision = decode_decision(bytes);
      if (!decision) return tl::unexpected(decision.error());
      recording.note(view.time, *decision);
    }
  }
}

}  // namespace

Result<std::unique_ptr<IncomingStream>> open_journal(const std::string& path, const PoolSpec& pool,
                                                     const Tiers& tiers) {
  std::error_code error;
  const bool folder = std::filesystem::is_directory(path, error);
  std::vector<Incoming> items;
  Recording recording(items);
  auto read = read_records(folder ? path + "/journal.db" : path, recording);
  if (!read) return tl::unexpected(read.error());
  const std::int64_t passed_over = recording.finish();
  for (Incoming& item : items) {
    if (auto* job = std::get_if<JobIncoming>(&item.what)) {
      job->spec.tier = tiers.training_or(pool, job->spec.tier);
    } else if (auto* service = std::get_if<ServiceIncoming>(&item.what)) {
      service->spec.tier = tiers.inference_or(pool, service->spec.tier);
    }
  }
  return std::make_unique<RecordedStream>(std::move(items), passed_over);
}

}  // namespace neap::whatif
