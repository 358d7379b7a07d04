// The files of the demonstration: its pool, its two training jobs, its service.
#pragma once

#include <cstdint>
#include <string>

#include "cli/demo.h"
#include "core/model/result.h"
#include "load/arrivals.h"

namespace neap::cli {

struct DemoFiles {
  std::string folder;
  std::string pool_file;
  std::string state_dir;
  std::string socket;
  std::string daemon_log;
  std::string program;     // this executable
  std::string examples;    // with train.py and serve.py
  std::uint16_t port = 0;  // of the service
};

struct DemoTask {
  std::string name;
  std::string text;  // a task file
  std::string workdir;
};

inline constexpr const char* demo_service = "chat";
inline constexpr const char* demo_trainings[] = {"train-a", "train-b"};
inline constexpr std::int64_t demo_devices = 4;
inline constexpr std::int64_t demo_replicas_max = 3;

// Makes the folder and writes the pool file; refuses when torch or the examples are missing.
[[nodiscard]] Result<DemoFiles> prepare_demo(const DemoOptions& options);

[[nodiscard]] std::string demo_pool_text(const DemoFiles& files);
[[nodiscard]] DemoTask demo_training(const DemoFiles& files, const DemoOptions& options,
                                     const std::string& name);
[[nodiscard]] DemoTask demo_chat(const DemoFiles& files, const DemoOptions& options);

// A request of the load, and how the day asks for it.
[[nodiscard]] std::string demo_request_body();
[[nodiscard]] load::DayShape demo_day(const DemoOptions& options);

}  // namespace neap::cli
