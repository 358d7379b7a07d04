#include "daemon/loop.h"

#include <fmt/format.h>

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <span>

#include "core/model/check.h"
#include "core/model/codec.h"
#include "core/model/pool_index.h"
#include "daemon/crash_points.h"
#include "daemon/log.h"

namespace neap::daemon {

namespace {

// Messages taken from the inbox in one turn: enough to share an fsync, few enough that timers
// and answers do not wait long.
constexpr std::size_t messages_per_turn = 1'024;

std::span<const std::byte> as_bytes(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

bool is_aggregate(const Event& event) {
  return std::holds_alternative<StepsReported>(event) ||
         std::holds_alternative<RequestsServed>(event);
}

void drain(int fd) {
  std::uint64_t count = 0;
  while (::read(fd, &count, sizeof count) > 0) {
  }
}

}  // namespace

Loop::Loop(PoolState state, Books books, journal::Journal journal, Clock clock, Outlet outlet,
           Options options)
    : state_(std::move(state)),
      books_(std::move(books)),
      journal_(std::move(journal)),
      clock_(std::move(clock)),
      outlet_(std::move(outlet)),
      options_(options),
      last_snapshot_(state_.sequence),
      last_seal_(state_.now),
      wake_fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  NEAP_CHECK(wake_fd_ >= 0);
  sequencer_.restore(state_);
}

Loop::~Loop() { ::close(wake_fd_); }

void Loop::post(Event event) {
  Incoming incoming;
  incoming.event = std::move(event);
  const std::scoped_lock lock(mutex_);
  inbox_.push_back(std::move(incoming));
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(wake_fd_, &one, sizeof one);
}

void Loop::submit(Event event, Reply reply) {
  Incoming incoming;
  incoming.event = std::move(event);
  incoming.reply = std::move(reply);
  const std::scoped_lock lock(mutex_);
  inbox_.push_back(std::move(incoming));
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(wake_fd_, &one, sizeof one);
}

void Loop::query(Query query) {
  Incoming incoming;
  incoming.query = std::move(query);
  const std::scoped_lock lock(mutex_);
  inbox_.push_back(std::move(incoming));
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(wake_fd_, &one, sizeof one);
}

void Loop::stop() {
  stopping_.store(true);
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(wake_fd_, &one, sizeof one);
}

Result<void> Loop::run() {
  // What the start itself decided must be durable before anything is carried out.
  if (auto flushed = journal_.flush(); !flushed) return flushed;
  for (const Action& action : pending_actions(state_)) outlet_.carry_out(action);
  while (!stopping_.load()) {
    wait_for_work();
    const Time now = std::max(clock_(), state_.now);
    crash_point(CrashPoint::turn_begun);
    take_inbox(now);
    if (next_timer(state_) <= now && journal_.has_room()) {
      Incoming timer;
      timer.event = TimerFired{};
      admit(std::move(timer), now);
    }
    crash_point(CrashPoint::applied);
    if (auto appended = append_turn(); !appended) return appended;
    crash_point(CrashPoint::handed_to_journal);
    release_durable();
    keep_journal(now);
  }
  if (auto flushed = journal_.flush(); !flushed) return flushed;
  release_durable();
  return {};
}

void Loop::wait_for_work() {
  {
    const std::scoped_lock lock(mutex_);
    if (!inbox_.empty() && journal_.has_room()) return;
  }
  const Time next = next_timer(state_);
  int timeout_ms = -1;
  if (next != Time::never()) {
    const std::int64_t left_us = std::max<std::int64_t>(0, (next - clock_()).value);
    timeout_ms = static_cast<int>(std::min<std::int64_t>(left_us / 1'000 + 1, 60'000));
    if (left_us == 0) timeout_ms = 0;
  }
  pollfd fds[2] = {{wake_fd_, POLLIN, 0}, {journal_.durable_fd(), POLLIN, 0}};
  ::poll(fds, 2, timeout_ms);
  if ((fds[0].revents & POLLIN) != 0) drain(wake_fd_);
  if ((fds[1].revents & POLLIN) != 0) drain(journal_.durable_fd());
}

void Loop::take_inbox(Time now) {
  std::deque<Incoming> taken;
  {
    const std::scoped_lock lock(mutex_);
    if (inbox_.size() <= messages_per_turn) {
      taken.swap(inbox_);
    } else {
      for (std::size_t i = 0; i < messages_per_turn; ++i) {
        taken.push_back(std::move(inbox_.front()));
        inbox_.pop_front();
      }
    }
  }
  while (!taken.empty() && journal_.has_room()) {
    admit(std::move(taken.front()), now);
    taken.pop_front();
  }
  if (taken.empty()) return;
  // The journal is behind: what it has no room for waits, in its order.
  const std::scoped_lock lock(mutex_);
  inbox_.insert(inbox_.begin(), std::make_move_iterator(taken.begin()),
                std::make_move_iterator(taken.end()));
}

void Loop::admit(Incoming incoming, Time now) {
  if (incoming.query) {
    incoming.query(state_, books_);
    return;
  }
  Held held;
  held.reply = std::move(incoming.reply);
  StepResult result;
  std::vector<Event> ready;
  if (const ReportStamp* stamp = stamp_of(*incoming.event)) {
    // Reports of what has ended, or was applied before a crash, are only acknowledged again.
    const bool known = state_.index->allocations.contains(stamp->source);
    if (!known || sequencer_.is_old(*stamp)) held.stamps.push_back(*stamp);
    if (known) sequencer_.admit(std::move(*incoming.event), ready);
  } else {
    ready.push_back(std::move(*incoming.event));
  }
  for (Event& event : ready) {
    const ReportStamp stamp = stamp_of(event) != nullptr ? *stamp_of(event) : ReportStamp{};
    const bool applied = apply_event(now, std::move(event), held, result);
    if (applied && stamp.source.valid()) held.stamps.push_back(stamp);
  }
  held.sequence = state_.sequence;
  held.actions = std::move(result.actions);
  if (held.reply && !held.outcome) {
    held.outcome = Outcome{state_.sequence, std::move(result.decisions)};
  }
  turn_.push_back(std::move(held));
}

bool Loop::apply_event(Time now, Event event, Held& held, StepResult& result) {
  if (auto allowed = check_event(state_, event); !allowed) {
    if (held.reply) {
      held.outcome = tl::unexpected(allowed.error());
    } else {
      log_warning(fmt::format("dropped {}: {}", name_of(event), to_string(allowed.error())));
    }
    return false;
  }
  const ReportStamp* stamp = stamp_of(event);
  TaskId reporter;
  if (stamp != nullptr) {
    reporter = state_.index->allocations.at(stamp->source);
    if (std::holds_alternative<TaskExited>(event) || std::holds_alternative<StartFailed>(event)) {
      sequencer_.forget(stamp->source);
    }
  }
  result.note = [&](const PoolState& state, const Event* fact, const Decision* decision) {
    Record record{state.sequence, state.now, {}, TaskId::none()};
    if (fact != nullptr) {
      record.body = *fact;
      record.reporter = reporter;
      const auto kind =
          is_aggregate(*fact) ? journal::RecordKind::aggregate : journal::RecordKind::event;
      batch_.add(now, kind, static_cast<std::uint16_t>(fact->index()), as_bytes(encode(*fact)));
    } else {
      record.body = *decision;
      const auto kind = std::holds_alternative<WaitReasonChanged>(*decision)
                            ? journal::RecordKind::reason
                            : journal::RecordKind::decision;
      batch_.add(now, kind, static_cast<std::uint16_t>(decision->index()),
                 as_bytes(encode(*decision)));
    }
    books_.note(state, record);
    held.records.push_back(std::move(record));
  };
  step(state_, now, event, result);
  return true;
}

Result<void> Loop::append_turn() {
  if (!batch_.empty()) {
    const auto last = journal_.append(batch_);
    if (!last) return tl::unexpected(last.error());
    NEAP_CHECK(*last == state_.sequence);
    batch_.clear();
  }
  for (Held& held : turn_) outbox_.push_back(std::move(held));
  turn_.clear();
  return {};
}

void Loop::release_durable() {
  const std::uint64_t durable = journal_.durable_sequence();
  while (!outbox_.empty() && outbox_.front().sequence <= durable) {
    Held held = std::move(outbox_.front());
    outbox_.pop_front();
    crash_point(CrashPoint::before_actions);
    if (outlet_.route) {
      for (const Record& record : held.records) outlet_.route(state_, record);
    }
    for (const Action& action : held.actions) {
      outlet_.carry_out(action);
      crash_point(CrashPoint::action_sent);
    }
    for (const ReportStamp& stamp : held.stamps) outlet_.acknowledge(stamp);
    crash_point(CrashPoint::acknowledged);
    if (held.reply) held.reply(std::move(*held.outcome));
    for (const Record& record : held.records) outlet_.publish(state_, record);
    crash_point(CrashPoint::published);
  }
}

void Loop::keep_journal(Time now) {
  if (state_.sequence - last_snapshot_ >= options_.snapshot_every && journal_.has_room()) {
    const std::string blob = encode_checkpoint(state_, books_);
    const auto bytes = as_bytes(blob);
    if (auto taken = journal_.snapshot({bytes.begin(), bytes.end()}); !taken) {
      log_warning(fmt::format("no snapshot: {}", to_string(taken.error())));
    }
    last_snapshot_ = state_.sequence;
  }
  if (now - last_seal_ >= options_.seal_every) {
    Encoder balances;
    books_.encode_balances(balances);
    const std::string blob = balances.take();
    const auto bytes = as_bytes(blob);
    if (auto sealed = journal_.seal({bytes.begin(), bytes.end()}); !sealed) {
      log_warning(fmt::format("segment not sealed: {}", to_string(sealed.error())));
    }
    if (auto dropped = journal_.drop_raw_before(now - options_.retention); !dropped) {
      log_warning(fmt::format("old segments kept: {}", to_string(dropped.error())));
    }
    last_seal_ = now;
  }
}

Result<void> Loop::apply_now(Event event) {
  const Time now = std::max(clock_(), state_.now);
  if (auto allowed = check_event(state_, event); !allowed) return allowed;
  Incoming incoming;
  incoming.event = std::move(event);
  admit(std::move(incoming), now);
  return append_turn();
}

}  // namespace neap::daemon
