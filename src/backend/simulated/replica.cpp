#include "backend/simulated/replica.h"

namespace neap::simulated {

void Replica::begin() {
  after(behaviour_.load, [this] { become_healthy(); });
  if (shows(Fault::crashes)) {
    after(seconds(behaviour_.fault_at), [this] { crash("the simulated server failed"); });
  }
}

void Replica::become_healthy() {
  healthy_ = true;
  report(ReplicaHealthy{});
  if (behaviour_.sick_every.value == 0) return;
  after(around_.random.wait(behaviour_.sick_every), [this] { become_sick(); });
}

void Replica::become_sick() {
  healthy_ = false;
  report(ReplicaUnhealthy{.detail = "the health check timed out"});
  after(behaviour_.sick_for, [this] { become_healthy(); });
}

void Replica::on_term() {
  if (shows(Fault::ignores_term)) return;
  forget_plans();
  healthy_ = false;
  after(behaviour_.drain, [this] { end(0, 0, "drained"); });
}

}  // namespace neap::simulated
