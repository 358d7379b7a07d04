// Any interleaving of reports with duplicates and reorderings gives each source's stream in
// order, once (POLICIES 7: duplicates and reorderings change nothing).
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "core/sequencer.h"

namespace neap::sequencer_property {
namespace {

using Stream = std::map<std::uint64_t, std::vector<std::uint64_t>>;  // source -> sequences

struct Delivery {
  std::vector<std::uint64_t> lengths;  // of each source's stream
  std::vector<ReportStamp> order;      // as they arrive: each at least once
};

// The size is fixed: the ranges of rapidcheck shrink with it, down to nothing.
template <class T>
T any_below(T end) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange<T>(0, end));
}

Delivery any_delivery() {
  Delivery delivery;
  delivery.lengths.resize(1 + any_below<std::size_t>(4));
  std::vector<ReportStamp> all;
  for (std::uint64_t source = 0; source < delivery.lengths.size(); ++source) {
    delivery.lengths[source] = any_below<std::uint64_t>(12);
    for (std::uint64_t n = 1; n <= delivery.lengths[source]; ++n) {
      const int copies = 1 + any_below(3);
      for (int c = 0; c < copies; ++c) all.push_back({AllocationId(source), 0, n});
    }
  }
  for (std::size_t i = all.size(); i > 1; --i) std::swap(all[i - 1], all[any_below(i)]);
  delivery.order = std::move(all);
  return delivery;
}

template <class Queue>
Stream streams_out_of(Queue& queue, const Delivery& delivery) {
  Stream out;
  for (const ReportStamp& stamp : delivery.order) {
    std::vector<Event> ready;
    queue.admit(StepsReported{.stamp = stamp}, ready);
    for (const Event& event : ready) {
      out[stamp_of(event)->source.value].push_back(stamp_of(event)->sequence);
    }
  }
  return out;
}

Stream in_order(const Delivery& delivery) {
  Stream expected;
  for (std::uint64_t source = 0; source < delivery.lengths.size(); ++source) {
    for (std::uint64_t n = 1; n <= delivery.lengths[source]; ++n) expected[source].push_back(n);
  }
  return expected;
}

RC_GTEST_PROP(SequencerProperty, InOrderAndOnce, ()) {
  const Delivery delivery = any_delivery();
  Sequencer sequencer;
  RC_ASSERT(streams_out_of(sequencer, delivery) == in_order(delivery));
}

// A daemon that crashes anywhere and restores what it had applied loses and repeats nothing, as
// long as what was not applied is sent again.
RC_GTEST_PROP(SequencerProperty, ARestartLosesAndRepeatsNothing, ()) {
  const Delivery delivery = any_delivery();
  PoolState state;
  state.next_allocation = delivery.lengths.size();
  for (std::uint64_t source = 0; source < delivery.lengths.size(); ++source) {
    TaskState& task = state.tasks.add();
    task.phase = Phase::running;
    task.allocation = AllocationId(source);
  }
  const std::size_t crash_after = any_below(delivery.order.size() + 1);
  Sequencer sequencer;
  Stream out;
  const auto deliver = [&](const ReportStamp& stamp) {
    std::vector<Event> ready;
    sequencer.admit(StepsReported{.stamp = stamp}, ready);
    for (const Event& event : ready) {
      const ReportStamp& applied = *stamp_of(event);
      out[applied.source.value].push_back(applied.sequence);
      state.tasks.at(TaskId(static_cast<std::uint32_t>(applied.source.value))).report_sequence =
          applied.sequence;
    }
  };
  for (std::size_t i = 0; i < crash_after; ++i) deliver(delivery.order[i]);
  sequencer = Sequencer();
  sequencer.restore(state);
  for (const ReportStamp& stamp : delivery.order) deliver(stamp);
  RC_ASSERT(out == in_order(delivery));
}

// The property sees a queue that forgets what it has passed on, and one that does not wait.
class RepeatsDuplicates {
 public:
  void admit(Event event, std::vector<Event>& ready) {
    const ReportStamp stamp = *stamp_of(event);
    waiting_[stamp.source].insert_or_assign(stamp.sequence, event);
    std::uint64_t& next = next_[stamp.source];
    if (next == 0) next = 1;
    if (stamp.sequence < next) ready.push_back(event);  // the planted fault
    for (auto it = waiting_[stamp.source].find(next); it != waiting_[stamp.source].end();
         it = waiting_[stamp.source].find(++next)) {
      ready.push_back(it->second);
    }
  }

 private:
  std::map<AllocationId, std::map<std::uint64_t, Event>> waiting_;
  std::map<AllocationId, std::uint64_t> next_;
};
class DoesNotWait {
 public:
  void admit(Event event, std::vector<Event>& ready) {
    const ReportStamp stamp = *stamp_of(event);
    std::uint64_t& last = last_[stamp.source];
    if (stamp.sequence <= last) return;
    last = stamp.sequence;
    ready.push_back(std::move(event));
  }

 private:
  std::map<AllocationId, std::uint64_t> last_;
};

template <class Faulty>
bool property_holds() {
  rc::detail::TestParams params;
  params.maxSuccess = 200;
  params.seed = 1;
  const auto result = rc::detail::checkTestable(
      [] {
        const Delivery delivery = any_delivery();
        Faulty faulty;
        RC_ASSERT(streams_out_of(faulty, delivery) == in_order(delivery));
      },
      rc::detail::TestMetadata{}, params);
  return result.template is<rc::detail::SuccessResult>();
}

TEST(SequencerProperty, SeesPlantedFaults) {
  EXPECT_FALSE(property_holds<RepeatsDuplicates>());
  EXPECT_FALSE(property_holds<DoesNotWait>());
}

}  // namespace
}  // namespace neap::sequencer_property
