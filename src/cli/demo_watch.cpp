#include "cli/demo_watch.h"

#include <algorithm>

#include "cli/demo_files.h"

namespace neap::cli {
namespace {

constexpr std::size_t story_length = 4;
constexpr int pages_at_once = 20;

bool is_training(const std::string& name) {
  return std::ranges::any_of(demo_trainings, [&](const char* t) { return name == t; });
}

// What a person at the display wants to read.
bool worth_telling(const std::string& kind) {
  static const std::set<std::string> kinds{
      "task_placed",    "preemption_planned", "yield_asked",  "task_exited",
      "replica_added",  "replica_healthy",    "stop_asked",   "checkpoint_asked",
      "task_refused",   "contract_broken",    "start_failed", "kill_asked",
      "yield_withdrawn"};
  return kinds.contains(kind);
}

}  // namespace

const SeenTask* PoolPicture::task(const std::string& name) const {
  const auto found = std::ranges::find(tasks, name, &SeenTask::name);
  return found == tasks.end() ? nullptr : &*found;
}

PoolPicture picture_of(const Value& devices, const Value& tasks, const Value& services) {
  PoolPicture picture;
  picture.now_us = tasks.at("pool").number_at("now_us");
  for (const Value& row : devices.list_at("devices")) {
    SeenDevice device{row.text_at("name"), row.text_at("role"), row.text_at("model"), {}};
    for (const Value& holder : row.list_at("holders")) {
      device.holders.push_back(holder.text_at("task"));
    }
    picture.devices.push_back(std::move(device));
  }
  for (const Value& row : tasks.list_at("tasks")) {
    const std::string& state = row.text_at("state");
    if (!row.at("finished_us").is_null()) continue;
    picture.tasks.push_back({.name = row.text_at("name"),
                             .state = state,
                             .reason = row.text_at("reason"),
                             .replica = row.text_at("kind") == "replica",
                             .step = row.number_at("step"),
                             .preemptions = row.number_at("preemptions"),
                             .lost_work_us = row.number_at("lost_work_us")});
  }
  for (const Value& row : services.list_at("services")) {
    if (row.text_at("name") != demo_service) continue;
    picture.replicas_ready = row.number_at("replicas_ready");
    picture.replicas_wanted = row.number_at("replicas_wanted");
  }
  return picture;
}

void Evidence::note(const PoolPicture& picture) {
  replicas_most = std::max(replicas_most, picture.replicas_ready);
  for (const SeenDevice& device : picture.devices) {
    for (const std::string& holder : device.holders) {
      if (is_training(holder)) last_training[device.name] = holder;
      const auto replica = std::ranges::find(ready, holder, &ReadyReplica::name);
      if (replica == ready.end() || !replica->role.empty()) continue;
      replica->role = device.role;
      const auto former = last_training.find(device.name);
      if (former != last_training.end()) replica->taken_from = former->second;
    }
  }
}

void Evidence::note_events(const Value& page) {
  for (const Value& event : page.list_at("events")) {
    const std::string& kind = event.text_at("kind");
    const std::string& subject = event.text_at("subject");
    const std::string& message = event.text_at("message");
    if (kind == "replica_healthy" &&
        std::ranges::find(ready, subject, &ReadyReplica::name) == ready.end()) {
      ready.push_back({.name = subject, .time_us = event.number_at("time_us")});
    }
    if (is_training(subject)) {
      if (kind == "yield_asked") ++yields_asked;
      if (kind == "yield_withdrawn") ++withdrawn;
      if (kind == "task_exited" && message.find("exit 75") != std::string::npos) ++yielded;
      if (kind == "kill_asked") ++killed;
      if (kind == "task_placed" && yielded > restarts) ++restarts;
    }
    if (worth_telling(kind)) {
      story.push_back(subject + ": " + message);
      if (story.size() > story_length) story.erase(story.begin());
    }
  }
}

DemoWatch::DemoWatch(const std::string& socket)
    : client_({.socket = socket, .url = {}, .token = {}}) {
  client_.set_timeout(std::chrono::seconds(10));
}

Result<Value> DemoWatch::get(const std::string& path) {
  const Result<std::string> body = client_.get(path);
  if (!body) return tl::unexpected(body.error());
  return Value::parse(*body);
}

Result<void> DemoWatch::refresh() {
  for (int i = 0; i < pages_at_once; ++i) {
    const Result<Value> page = get("/v1/events?limit=1000&after=" + std::to_string(last_event_));
    if (!page) return tl::unexpected(page.error());
    evidence_.note_events(*page);
    const std::int64_t last = page->number_at("last", last_event_);
    const bool whole = last == last_event_ || page->list_at("events").size() < 1000;
    last_event_ = last;
    if (whole) break;
  }
  const Result<Value> devices = get("/v1/devices");
  if (!devices) return tl::unexpected(devices.error());
  const Result<Value> tasks = get("/v1/tasks");
  if (!tasks) return tl::unexpected(tasks.error());
  const Result<Value> services = get("/v1/services");
  if (!services) return tl::unexpected(services.error());
  picture_ = picture_of(*devices, *tasks, *services);
  evidence_.note(picture_);
  return {};
}

}  // namespace neap::cli
