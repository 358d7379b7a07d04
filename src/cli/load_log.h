// The log of a load's requests, written by a thread of its own: a slow disk makes no request late.
#pragma once

#include <condition_variable>
#include <cstdio>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/model/result.h"
#include "load/generator.h"

namespace neap::cli {

class LoadLog {
 public:
  // CSV; one JSON object a line where the name ends in .jsonl. An existing file is replaced.
  [[nodiscard]] static Result<std::unique_ptr<LoadLog>> open(const std::string& path,
                                                             std::vector<load::LoadClass> classes);
  ~LoadLog();
  LoadLog(const LoadLog&) = delete;
  LoadLog& operator=(const LoadLog&) = delete;

  void add(const load::RequestResult& result);
  // All is on its way to the disk, or the error.
  [[nodiscard]] Result<void> close();

 private:
  LoadLog(std::FILE* file, std::string path, std::vector<load::LoadClass> classes);
  void write_all(const std::stop_token& stop);
  [[nodiscard]] std::string line_of(const load::RequestResult& result) const;

  std::FILE* file_;
  std::string path_;
  std::vector<load::LoadClass> classes_;
  bool json_;
  bool failed_ = false;  // the writer's, until it has ended
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::vector<load::RequestResult> waiting_;  // guarded by mutex_
  std::jthread writer_;
};

}  // namespace neap::cli
