// What the demonstration sees of the pool: pictures of it for the display, and the evidence that
// its promises held. All of it comes from the API.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "api/client.h"
#include "cli/value.h"
#include "core/model/result.h"

namespace neap::cli {

struct SeenTask {
  std::string name;
  std::string state;
  std::string reason;
  bool replica = false;
  std::int64_t step = 0;
  std::int64_t preemptions = 0;
  std::int64_t lost_work_us = 0;
};

struct SeenDevice {
  std::string name;
  std::string role;
  std::string model;
  std::vector<std::string> holders;
};

struct PoolPicture {
  std::vector<SeenDevice> devices;
  std::vector<SeenTask> tasks;  // that live
  std::int64_t replicas_ready = 0;
  std::int64_t replicas_wanted = 0;
  std::int64_t now_us = 0;  // the daemon's clock

  [[nodiscard]] const SeenTask* task(const std::string& name) const;
};

[[nodiscard]] PoolPicture picture_of(const Value& devices, const Value& tasks,
                                     const Value& services);

struct ReadyReplica {
  std::string name;
  std::int64_t time_us = 0;  // when it first answered its health check
  std::string role;          // of its device; empty until it was seen
  std::string taken_from;    // the training job that held the device last, if any
};

// Grows with every picture and every page of events.
struct Evidence {
  std::vector<ReadyReplica> ready;                   // in order
  std::map<std::string, std::string> last_training;  // by device
  std::int64_t yields_asked = 0;                     // of training jobs, to make room
  std::int64_t withdrawn = 0;                        // of these: taken back before the job stopped
  std::int64_t yielded = 0;        // of these: ended with a durable checkpoint, exit code 75
  std::int64_t killed = 0;         // of training jobs, by the pool
  std::int64_t restarts = 0;       // of training jobs, after a yield
  std::int64_t replicas_most = 0;  // ready at once
  std::vector<std::string> story;  // the newest few events, for the display

  void note(const PoolPicture& picture);
  void note_events(const Value& page);
};

class DemoWatch {
 public:
  explicit DemoWatch(const std::string& socket);

  // Asks the daemon for a picture and for what happened since.
  [[nodiscard]] Result<void> refresh();
  [[nodiscard]] const PoolPicture& picture() const { return picture_; }
  [[nodiscard]] const Evidence& evidence() const { return evidence_; }
  [[nodiscard]] Result<Value> get(const std::string& path);
  [[nodiscard]] api::Client& client() { return client_; }

 private:
  api::Client client_;
  PoolPicture picture_;
  Evidence evidence_;
  std::int64_t last_event_ = 0;
};

}  // namespace neap::cli
