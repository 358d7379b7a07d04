#include "ledger/testing/second_reducer.h"

#include <algorithm>
#include <set>
#include <type_traits>

namespace neap::ledger::testing {
namespace {

using Wide = Amount::Wide;
using C = Category;

template <class T, class Variant>
inline constexpr bool is_one_of = false;
template <class T, class... Ts>
inline constexpr bool is_one_of<T, std::variant<Ts...>> = (std::is_same_v<T, Ts> || ...);

template <class T>
const T* as(const Record& record) {
  using Kind = std::conditional_t<is_one_of<T, Event>, Event, Decision>;
  const auto* kind = std::get_if<Kind>(&record);
  return kind != nullptr ? std::get_if<T>(kind) : nullptr;
}

// A stretch of an allocation's time with its category, and who pays for it.
struct Stretch {
  std::int64_t from = 0, to = 0;
  C category{};
  std::string payer;  // empty: its own team
};

struct TaskLine {
  std::string name, team;
  bool replica = false, sdk = false;
  bool signals_only = false, contract = false;
  std::uint32_t service = 0;
  bool cancelled = false, closed = false;
  std::int64_t best = 0;  // highest durable step
  std::int64_t alone_n = 0, alone_b = 0, n = 0, b = 0;
  std::string payer;
  std::uint64_t asked_in = 0;
  std::vector<std::pair<std::int64_t, std::int64_t>> waits;  // [from, to), to = -1: open
};

struct AllocationLine {
  std::uint64_t id = 0;
  std::uint32_t task = 0;
  std::vector<Slot> slots;
  std::int64_t from = 0, painted = 0, to = -1;
  bool going = false;  // steps or health were seen
  bool sick = false;
  bool shared = false;
  std::int64_t process = -1, asked = -1;
  std::int64_t n = 0, b = 0, last = 0;
  StopReason reason{};
  std::vector<Stretch> stretches;
};

struct Mark {  // a change of one device
  std::int64_t at = 0;
  std::int64_t used = 0;
  bool broken = false, guard = false;
};

struct DeviceLine {
  std::int64_t price = 1000;
  bool sick = false, excluded = false, away = false, lost = false, guard = false;
  std::int64_t used = 0;
  std::set<std::uint64_t> tenants;
  std::vector<Mark> marks;
};

class Painter {
 public:
  explicit Painter(const std::map<std::string, std::int64_t>& prices) : prices_(prices) {}

  void read(std::int64_t at, const Record& record) {
    at_ = at;
    read_pool(record);
    read_people(record);
    read_decisions(record);
    read_reports(record);
  }

  Answers answers(std::int64_t end) const;

 private:
  // ---- the pool ------------------------------------------------------------------------------

  void read_pool(const Record& r) {
    if (const auto* e = as<NodeJoined>(r)) {
      if (!nodes_.contains(e->spec.name)) {
        for (const DeviceSpec& spec : e->spec.devices) {
          DeviceLine device;
          if (prices_.contains(spec.model)) device.price = prices_.at(spec.model);
          nodes_[e->spec.name].push_back(devices_.size());
          devices_.push_back(device);
          mark(devices_.size() - 1);
        }
      }
      away(e->spec.name, false);
      for (const std::size_t d : nodes_[e->spec.name]) devices_[d].lost = false;
    } else if (const auto* u = as<NodeUnreachable>(r)) {
      away(u->node, true);
    } else if (const auto* l = as<NodeLost>(r)) {
      away(l->node, true);
      std::set<std::uint64_t> gone;
      for (const std::size_t d : nodes_[l->node]) {
        gone.insert(devices_[d].tenants.begin(), devices_[d].tenants.end());
      }
      for (const std::size_t d : nodes_[l->node]) devices_[d].lost = true;
      for (const std::uint64_t a : gone) {
        const auto& slots = lines_[a].slots;
        if (std::all_of(slots.begin(), slots.end(),
                        [&](const Slot& s) { return devices_[s.device.value].lost; })) {
          finish(a, 'x', true);
        }
      }
    } else if (const auto* h = as<DeviceHealthChanged>(r)) {
      const std::size_t d = nodes_[h->node][static_cast<std::size_t>(h->index)];
      devices_[d].sick = h->health != DeviceHealth::healthy;
      mark(d);
    }
  }

  void away(const std::string& node, bool gone) {
    for (const std::size_t d : nodes_[node]) {
      devices_[d].away = gone;
      mark(d);
    }
  }

  void mark(std::size_t d) {
    const DeviceLine& x = devices_[d];
    devices_[d].marks.push_back({at_, x.used, x.sick || x.excluded || x.away, x.guard});
  }

  // ---- people --------------------------------------------------------------------------------

  void list(const TaskSpec& spec) {
    TaskLine task;
    task.name = spec.name;
    task.team = spec.team;
    const ContractSpec& c = spec.contract;
    task.sdk = c.sdk;
    task.contract = c.sdk || c.signals || c.watch;
    task.signals_only = c.signals && !c.sdk && !c.watch;
    tasks_.push_back(task);
  }

  bool holds(std::size_t task) const {
    return std::any_of(lines_.begin(), lines_.end(), [&](const auto& line) {
      return line.second.task == task && line.second.to < 0;
    });
  }

  void read_people(const Record& r) {
    if (const auto* e = as<TaskSubmitted>(r)) {
      list(e->spec);
      tasks_.back().waits.push_back({at_, -1});
    } else if (const auto* p = as<PipelineSubmitted>(r)) {
      for (const StageSpec& stage : p->spec.stages) {
        if (stage.task) list(*stage.task);
      }
    } else if (const auto* x = as<TaskCancelRequested>(r)) {
      for (std::size_t i = tasks_.size(); i-- > 0;) {
        TaskLine& task = tasks_[i];
        if (task.replica || task.closed || task.name != x->name) continue;
        task.cancelled = true;
        if (!holds(i)) close(task);
        break;
      }
    } else if (const auto* s = as<ServiceSubmitted>(r)) {
      services_.push_back(s->spec.team);
    }
  }

  void close(TaskLine& task) {
    task.closed = true;
    if (!task.waits.empty() && task.waits.back().second < 0) task.waits.back().second = at_;
  }

  // ---- decisions -----------------------------------------------------------------------------

  void read_decisions(const Record& r) {
    if (const auto* p = as<TaskPlaced>(r)) {
      place(*p);
      if (p->lender.valid()) planned_[p->task.value] = tasks_[p->lender.value].team;
    } else if (const auto* x = as<TaskRefused>(r)) {
      close(tasks_[x->task.value]);
    } else if (const auto* stage = as<StageEntered>(r)) {
      if (!stage->task.valid()) {
        if (stage->service.value == services_.size()) services_.push_back(stage->team);
      } else if (!tasks_[stage->task.value].closed) {
        tasks_[stage->task.value].waits.push_back({at_, -1});
      }
    } else if (const auto* over = as<StageEnded>(r)) {
      if (over->task.valid() && !holds(over->task.value)) close(tasks_[over->task.value]);
    } else if (const auto* add = as<ReplicaAdded>(r)) {
      TaskLine task;
      task.replica = true;
      task.service = add->service.value;
      task.team = services_[add->service.value];
      tasks_.push_back(task);
    } else if (const auto* roles = as<RolesAssigned>(r)) {
      for (std::size_t d = 0; d < devices_.size(); ++d) {
        const DeviceId id(static_cast<std::uint32_t>(d));
        devices_[d].guard = std::count(roles->guard.begin(), roles->guard.end(), id) > 0;
        mark(d);
      }
    } else if (const auto* out = as<DeviceExcluded>(r)) {
      devices_[out->device.value].excluded = true;
      mark(out->device.value);
    } else if (const auto* in = as<DeviceReadmitted>(r)) {
      devices_[in->device.value].excluded = false;
      mark(in->device.value);
    } else if (const auto* plan = as<PreemptionPlanned>(r)) {
      for (const Victim& v : plan->victims) {
        planned_[v.task.value] = tasks_[plan->task.value].team;
      }
    } else if (const auto* room = as<RoomReserved>(r)) {
      for (const Victim& v : room->victims) {
        planned_[v.task.value] = tasks_[room->task.value].team;
      }
    } else if (const auto* y = as<YieldAsked>(r)) {
      ask(y->allocation, y->reason);
    } else if (const auto* s = as<StopAsked>(r)) {
      ask(s->allocation, s->reason);
      const AllocationLine* stopped = live(s->allocation);
      if (stopped != nullptr && s->reason == StopReason::cancelled) {
        tasks_[stopped->task].cancelled = true;
      }
    } else if (const auto* k = as<KillAsked>(r)) {
      ask(k->allocation, k->reason);
    } else if (const auto* w = as<YieldWithdrawn>(r)) {
      if (AllocationLine* line = live(w->allocation)) {
        line->asked = -1;
        line->reason = StopReason::none;
        planned_.erase(w->task.value);
        tasks_[w->task.value].payer.clear();
      }
    }
  }

  void place(const TaskPlaced& p) {
    AllocationLine line;
    line.id = p.allocation.value;
    line.task = p.task.value;
    line.slots = p.slots;
    line.from = line.painted = at_;
    auto& waits = tasks_[line.task].waits;
    if (!waits.empty() && waits.back().second < 0) waits.back().second = at_;
    for (const Slot& slot : p.slots) {
      DeviceLine& device = devices_[slot.device.value];
      for (const std::uint64_t other : device.tenants) lines_[other].shared = line.shared = true;
      device.used += slot.share.value;
      device.tenants.insert(line.id);
      mark(slot.device.value);
    }
    lines_[line.id] = line;
  }

  void ask(AllocationId id, StopReason reason) {
    AllocationLine* line = live(id);
    if (line == nullptr) return;
    if (line->asked < 0) line->asked = at_;
    line->reason = reason;
    TaskLine& task = tasks_[line->task];
    const bool for_pool = reason == StopReason::guard_restored || reason == StopReason::moved ||
                          reason == StopReason::adoption || reason == StopReason::resized;
    if (for_pool) task.payer = "(pool)";
    if (reason == StopReason::preempted) {
      task.payer = planned_.contains(line->task) ? planned_[line->task] : "(pool)";
    }
    if (for_pool || reason == StopReason::preempted) {
      task.asked_in = line->id;
    }
  }

  // ---- painting ------------------------------------------------------------------------------

  AllocationLine* live(AllocationId id) {
    const auto found = lines_.find(id.value);
    return found == lines_.end() || found->second.to >= 0 ? nullptr : &found->second;
  }

  // Paints up to `us` more, never past `until`.
  void paint(AllocationLine& line, C category, Wide us, std::int64_t until) {
    const Wide room = until - line.painted;
    const auto length = static_cast<std::int64_t>(us < 0 ? 0 : us > room ? room : us);
    if (length <= 0) return;
    line.stretches.push_back(
        {line.painted, line.painted + length, category, tasks_[line.task].payer});
    line.painted += length;
  }
  void paint_to(AllocationLine& line, C category, std::int64_t until) {
    paint(line, category, Wide{until} - line.painted, until);
  }
  // In a later allocation than the one that was asked, the preemptor pays for the restore alone.
  void end_of_restore(const AllocationLine& line) {
    TaskLine& task = tasks_[line.task];
    if (task.asked_in != line.id && line.going) task.payer.clear();
  }

  static Wide cost(const TaskLine& task, std::int64_t steps) {
    const std::int64_t n = task.alone_n > 0 ? task.alone_n : task.n;
    const std::int64_t b = task.alone_n > 0 ? task.alone_b : task.b;
    return n > 0 ? Wide{steps} * b / n : 0;
  }

  void durable(AllocationLine& line, std::int64_t step, std::int64_t captured, std::int64_t stall) {
    TaskLine& task = tasks_[line.task];
    if (!line.going && line.process >= 0) paint_to(line, C::restore, line.process);
    captured = std::max(line.painted, std::min(captured, at_));
    const std::int64_t growth = step > task.best ? step - task.best : 0;
    task.best = std::max(task.best, step);
    const std::int64_t later_n = std::max<std::int64_t>(0, std::min(line.last - step, line.n));
    const auto later_b =
        later_n > 0 ? static_cast<std::int64_t>(Wide{later_n} * line.b / line.n) : 0;
    const std::int64_t n = line.n - later_n;
    const std::int64_t b = line.b - later_b;
    const bool steps = task.n > 0;
    if (steps) {
      paint(line, C::useful_training, cost(task, growth), captured);
      paint(line, C::lost_and_replayed, cost(task, std::max<std::int64_t>(0, n - growth)),
            captured);
      paint(line, C::interference, Wide{b} - cost(task, n), captured);
    }
    // The part of the stall that lies behind the captured moment comes before the rest.
    const std::int64_t behind = std::min(stall, at_ - captured);
    paint(line, C::checkpoint_stall, Wide{stall} - behind, captured);
    paint_to(line, steps ? C::held_idle : C::unverified, captured);
    paint_to(line, C::checkpoint_stall, captured + behind);
    line.n = later_n;
    line.b = later_b;
    line.going = true;
    end_of_restore(line);
  }

  // How: 'f' finished, 'y' yielded, 'x' anything else.
  void finish(std::uint64_t id, char how, bool again) {
    AllocationLine& line = lines_[id];
    TaskLine& task = tasks_[line.task];
    if (task.replica) {
      if (line.going && !line.sick) {
        unused(line);
      } else {
        paint_to(line, line.going ? C::fault : C::restore, at_);
      }
    } else if (how == 'f') {
      durable(line, std::max(line.last, task.best), at_, 0);
    } else if (!line.going) {
      paint_to(line, C::restore, at_);
    } else if (how == 'y' && task.n > 0) {
      const std::int64_t unsaved =
          std::max<std::int64_t>(0, std::min(line.last - task.best, line.n));
      paint(line, C::lost_and_replayed, cost(task, unsaved), at_);
      paint_to(line, C::drain, at_);
    } else if (how == 'y' && line.asked >= 0) {
      paint_to(line, C::lost_and_replayed, std::max(line.painted, line.asked));
      paint_to(line, C::drain, at_);
    } else {
      paint_to(line, C::lost_and_replayed, at_);
    }
    end_of_restore(line);
    line.to = at_;
    for (const Slot& slot : line.slots) {
      devices_[slot.device.value].used -= slot.share.value;
      devices_[slot.device.value].tenants.erase(id);
      mark(slot.device.value);
    }
    if (task.replica || task.cancelled || line.reason == StopReason::admission_revoked) {
      close(task);
    } else if (again) {
      task.waits.push_back({at_, -1});
    }
  }

  void unused(AllocationLine& line) {
    if (line.asked >= 0) {
      // What drains is as long as the time since the request; where it lies does not matter.
      paint(line, C::drain, at_ - std::max(line.painted, line.asked), at_);
    }
    paint_to(line, C::held_idle, at_);
  }

  void read_reports(const Record& r);
  void read_replica_reports(const Record& r);

  const std::map<std::string, std::int64_t>& prices_;
  std::int64_t at_ = 0;
  std::map<std::string, std::vector<std::size_t>> nodes_;
  std::vector<DeviceLine> devices_;
  std::vector<TaskLine> tasks_;
  std::vector<std::string> services_;
  std::map<std::uint64_t, AllocationLine> lines_;
  std::map<std::uint32_t, std::string> planned_;
};

void Painter::read_reports(const Record& r) {
  if (const auto* e = as<TaskStarted>(r)) {
    AllocationLine* line = live(e->stamp.source);
    if (line == nullptr || tasks_[line->task].replica || line->going) return;
    line->process = at_;
    if (tasks_[line->task].sdk) return;
    paint_to(*line, C::restore, at_);
    line->going = true;
    end_of_restore(*line);
  } else if (const auto* s = as<StepsReported>(r)) {
    AllocationLine* line = live(s->stamp.source);
    if (line == nullptr || tasks_[line->task].replica) return;
    TaskLine& task = tasks_[line->task];
    const bool was_shared = line->shared;
    line->shared = std::any_of(line->slots.begin(), line->slots.end(), [&](const Slot& slot) {
      return devices_[slot.device.value].tenants.size() > 1;
    });
    if (!line->going && s->count > 0) {
      paint_to(*line, C::restore, at_ - s->busy.value);
      line->going = true;
      end_of_restore(*line);
    }
    line->n += s->count;
    line->b += s->busy.value;
    line->last = std::max(line->last, s->last);
    task.n += s->count;
    task.b += s->busy.value;
    if (!was_shared) {
      task.alone_n += s->count;
      task.alone_b += s->busy.value;
    }
  } else if (const auto* c = as<CheckpointDurable>(r)) {
    AllocationLine* line = live(c->stamp.source);
    if (line == nullptr || tasks_[line->task].replica) return;
    durable(*line, c->step, c->captured.us, c->stall.value);
  } else if (const auto* f = as<StartFailed>(r)) {
    if (live(f->stamp.source) != nullptr) finish(f->stamp.source.value, 'x', false);
  } else if (const auto* x = as<TaskExited>(r)) {
    AllocationLine* line = live(x->stamp.source);
    if (line == nullptr) return;
    TaskLine& task = tasks_[line->task];
    if (x->signal == 0 && x->code == 0) {
      finish(line->id, task.cancelled ? 'x' : 'f', false);
      if (!task.replica) close(task);
    } else if (x->signal == 0 && x->code == 75 && task.contract) {
      finish(line->id, task.signals_only && !task.cancelled ? 'f' : 'y', true);
    } else {
      const StopReason why = line->reason;
      finish(line->id, 'x',
             why == StopReason::preempted || why == StopReason::guard_restored ||
                 why == StopReason::moved || why == StopReason::adoption ||
                 why == StopReason::resized || why == StopReason::device_failed);
    }
  } else {
    read_replica_reports(r);
  }
}

void Painter::read_replica_reports(const Record& r) {
  if (const auto* h = as<ReplicaHealthy>(r)) {
    AllocationLine* line = live(h->stamp.source);
    if (line == nullptr || !tasks_[line->task].replica) return;
    if (line->going && !line->sick) return;
    paint_to(*line, line->going ? C::fault : C::restore, at_);
    line->going = true;
    line->sick = false;
  } else if (const auto* u = as<ReplicaUnhealthy>(r)) {
    AllocationLine* line = live(u->stamp.source);
    if (line == nullptr || !tasks_[line->task].replica || !line->going || line->sick) return;
    unused(*line);
    line->sick = true;
  } else if (const auto* q = as<RequestsServed>(r)) {
    AllocationLine* line = live(q->allocation);
    if (line == nullptr || !tasks_[line->task].replica || !line->going || line->sick) return;
    const std::int64_t begun = line->painted;
    const std::int64_t late = q->responses - q->within_slo;
    if (q->within_slo > 0) {
      paint(*line, C::useful_inference, q->busy_within_slo.value, at_);
      paint(*line, C::slo_missed, Wide{late} * q->busy_within_slo.value / q->within_slo, at_);
    } else if (late > 0) {
      paint(*line, C::slo_missed, 10'000'000, at_);
    }
    if (line->asked >= 0) paint(*line, C::drain, at_ - std::max(begun, line->asked), at_);
    paint_to(*line, C::held_idle, at_);
  }
}

void add(Totals& to, C category, Wide amount) {
  to.by_category[static_cast<std::size_t>(category)] += Amount(amount);
}

Answers Painter::answers(std::int64_t end) const {
  Answers answers;
  for (const DeviceLine& device : devices_) {
    for (std::size_t i = 0; i < device.marks.size(); ++i) {
      const Mark& mark = device.marks[i];
      const std::int64_t to = i + 1 < device.marks.size() ? device.marks[i + 1].at : end;
      const C idle = mark.broken     ? C::fault
                     : mark.guard    ? C::guard_idle
                     : mark.used > 0 ? C::fragmented_idle
                                     : C::free;
      add(answers.pool, idle, Wide{1000 - mark.used} * (to - mark.at));
      answers.pool.provisioned += Amount(Wide{1000} * (to - mark.at));
    }
  }
  for (const auto& [id, line] : lines_) {
    const TaskLine& task = tasks_[line.task];
    std::vector<Totals*> own = {&answers.tasks[line.task], &answers.teams[task.team]};
    if (task.replica) own.push_back(&answers.services[task.service]);
    std::vector<Stretch> stretches = line.stretches;
    const std::int64_t to = line.to >= 0 ? line.to : end;
    if (to > line.painted) stretches.push_back({line.painted, to, C::pending, {}});
    for (const Stretch& stretch : stretches) {
      const Wide us = stretch.to - stretch.from;
      Wide milli = 0, price = 0;
      for (const Slot& slot : line.slots) {
        milli += slot.share.value;
        price += Wide{slot.share.value} * devices_[slot.device.value].price;
      }
      const C c = stretch.category;
      const bool overhead =
          c == C::lost_and_replayed || c == C::checkpoint_stall || c == C::drain || c == C::restore;
      const bool charged = overhead && !stretch.payer.empty();
      add(answers.pool, c, milli * us);
      answers.pool.billed += Amount(price * us);
      for (Totals* totals : own) {
        add(*totals, c, milli * us);
        totals->provisioned += Amount(milli * us);
        if (!charged) totals->billed += Amount(price * us);
      }
      if (charged) answers.teams[stretch.payer].billed += Amount(price * us);
    }
  }
  for (const TaskLine& task : tasks_) {
    if (!task.replica) ++answers.waiting_tasks;
    for (const auto& [from, to] : task.waits) {
      answers.waited += Amount((to < 0 ? end : to) - from);
    }
  }
  return answers;
}

}  // namespace

Answers reduce(const Journal& journal, Time end,
               const std::map<std::string, std::int64_t>& price_milli) {
  Painter painter(price_milli);
  for (const auto& [time, record] : journal) painter.read(time.us, record);
  return painter.answers(end.us);
}

}  // namespace neap::ledger::testing
