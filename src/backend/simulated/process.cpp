#include "backend/simulated/process.h"

#include <utility>

namespace neap::simulated {

namespace {
constexpr int sigkill = 9;
}

Process::Process(Surroundings& surroundings, std::shared_ptr<const StartTask> order,
                 Behaviour behaviour)
    : around_(surroundings),
      kept_order_(std::move(order)),
      behaviour_(behaviour),
      home_(order_.node) {}

bool Process::shows(Fault fault) const {
  return behaviour_.fault == fault && start_number_ <= behaviour_.fault_times;
}

Record& Process::record() {
  if (record_ == nullptr) {
    const bool replica = order_.service.valid();
    record_ =
        &around_.records[replica ? order_.name.substr(0, order_.name.rfind('.')) : order_.name];
  }
  return *record_;
}

void Process::start() {
  start_number_ = ++record().starts;
  if (shows(Fault::fails_to_start)) return fail_start("the program is not there");
  switch (around_.machines.occupy(order_)) {
    case Machines::Occupied::device_failed:
      return fail_start("a device does not answer");
    case Machines::Occupied::out_of_memory:
      return fail_start("out of device memory");
    case Machines::Occupied::yes:
      break;
  }
  after(behaviour_.spawn, [this] {
    report(TaskStarted{});
    begin();
  });
}

void Process::fail_start(const std::string& detail) {
  gone_ = true;
  report(StartFailed{.detail = detail});
}

void Process::stop(Time kill_at) {
  if (gone_) return;
  // Not among the plans: nothing that the process does keeps the supervisor from it.
  around_.timeline.at(kill_at, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->kill();
  });
  if (!hung_) on_term();
}

void Process::kill() {
  if (gone_) return;
  forget_plans();
  after(around_.random.between(milliseconds(50), seconds(2)),
        [this] { end(0, sigkill, "killed"); });
}

void Process::crash(const std::string& why) {
  if (gone_) return;
  forget_plans();
  end(1, 0, why);
}

void Process::hang() {
  if (gone_) return;
  forget_plans();
  hung_ = true;
}

void Process::lose_node(const std::string& name) {
  std::string survivor;
  for (const std::string& node : around_.machines.nodes_with(order_.devices)) {
    if (around_.machines.node(node).up) survivor = node;
  }
  if (survivor.empty()) {
    // Nothing is left to report anything: the loss of the node says it all.
    gone_ = true;
    around_.reports.drop(order_.allocation);
    return;
  }
  if (home_ == name) {
    home_ = survivor;
    around_.reports.move(order_.allocation, survivor);
  }
  if (gone_) return;
  forget_plans();
  after(around_.random.between(seconds(1), seconds(10)),
        [this] { end(1, 0, "a part of the gang is gone"); });
}

void Process::end(std::int32_t code, std::int32_t signal, std::string detail) {
  if (gone_) return;
  gone_ = true;
  around_.machines.vacate(order_.allocation);
  hung_ = false;  // the supervisor speaks, whatever the process did
  report(TaskExited{.code = code, .signal = signal, .detail = std::move(detail)});
}

}  // namespace neap::simulated
