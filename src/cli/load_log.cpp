#include "cli/load_log.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <utility>

#include "cli/value.h"

namespace neap::cli {
namespace {

constexpr auto write_every = std::chrono::milliseconds(200);

std::string exact_seconds_text(Micros at) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%lld.%06lld",
                static_cast<long long>(at.value / 1'000'000),
                static_cast<long long>(at.value % 1'000'000));
  return text.data();
}

}  // namespace

Result<std::unique_ptr<LoadLog>> LoadLog::open(const std::string& path,
                                               std::vector<load::LoadClass> classes) {
  std::FILE* file = std::fopen(path.c_str(), "we");
  if (file == nullptr) {
    return fail(ErrorCode::invalid_argument,
                std::string("cannot be written: ") + std::strerror(errno), path);
  }
  return std::unique_ptr<LoadLog>(new LoadLog(file, path, std::move(classes)));
}

LoadLog::LoadLog(std::FILE* file, std::string path, std::vector<load::LoadClass> classes)
    : file_(file),
      path_(std::move(path)),
      classes_(std::move(classes)),
      json_(path_.ends_with(".jsonl")),
      writer_([this](const std::stop_token& stop) { write_all(stop); }) {}

LoadLog::~LoadLog() {
  if (file_ != nullptr) static_cast<void>(close());
}

void LoadLog::add(const load::RequestResult& result) {
  const std::lock_guard lock(mutex_);
  waiting_.push_back(result);
}

Result<void> LoadLog::close() {
  writer_.request_stop();
  writer_.join();
  const bool closed = std::fclose(std::exchange(file_, nullptr)) == 0;
  if (closed && !failed_) return {};
  return fail(ErrorCode::unavailable, "the log was not written to its end", path_);
}

std::string LoadLog::line_of(const load::RequestResult& result) const {
  const std::string name = classes_.empty() ? "" : classes_[result.load_class].name;
  const std::string first =
      result.first_byte ? exact_seconds_text(*result.first_byte) : (json_ ? "null" : "");
  const std::string retry =
      result.retry_after ? std::to_string(*result.retry_after) : (json_ ? "null" : "");
  const std::string outcome(name_of(result.outcome));
  if (json_) {
    return "{\"number\": " + std::to_string(result.number) + ", \"class\": " + json_text(name) +
           ", \"arrival_s\": " + exact_seconds_text(result.scheduled) +
           ", \"started_s\": " + exact_seconds_text(result.started) +
           ", \"first_byte_s\": " + first +
           ", \"finished_s\": " + exact_seconds_text(result.finished) +
           ", \"status\": " + std::to_string(result.status) +
           ", \"outcome\": " + json_text(outcome) +
           ", \"tokens\": " + std::to_string(result.tokens) + ", \"retry_after_s\": " + retry +
           ", \"sent_again\": " + (result.sent_again ? "true" : "false") + "}\n";
  }
  return std::to_string(result.number) + "," + name + "," + exact_seconds_text(result.scheduled) +
         "," + exact_seconds_text(result.started) + "," + first + "," +
         exact_seconds_text(result.finished) + "," + std::to_string(result.status) + "," + outcome +
         "," + std::to_string(result.tokens) + "," + retry + "," + (result.sent_again ? "1" : "0") +
         "\n";
}

void LoadLog::write_all(const std::stop_token& stop) {
  if (!json_) {
    failed_ = std::fputs(
                  "number,class,arrival_s,started_s,first_byte_s,finished_s,status,outcome,tokens,"
                  "retry_after_s,sent_again\n",
                  file_) < 0;
  }
  for (bool last = false; !last;) {
    std::vector<load::RequestResult> some;
    {
      std::unique_lock lock(mutex_);
      last = wake_.wait_for(lock, stop, write_every, [&] { return stop.stop_requested(); });
      last = last || stop.stop_requested();
      some.swap(waiting_);
    }
    for (const load::RequestResult& one : some) {
      const std::string line = line_of(one);
      failed_ = failed_ || std::fwrite(line.data(), 1, line.size(), file_) != line.size();
    }
  }
}

}  // namespace neap::cli
