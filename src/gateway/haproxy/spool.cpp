#include "gateway/haproxy/spool.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <tuple>
#include <utility>

namespace neap::gateway {
namespace {

constexpr std::size_t piece = std::size_t{1} << 20;
constexpr std::string_view ending = ".log";

tl::unexpected<Error> spool_error(const char* doing, const std::string& path) {
  return fail(ErrorCode::unavailable, std::string(doing) + ": " + std::strerror(errno), path);
}

// As splice, where a file system has none: what was read is written, unless we are killed between.
ssize_t copy(int from, int to, loff_t offset) {
  std::array<char, 65536> bytes{};
  const ssize_t got = ::read(from, bytes.data(), bytes.size());
  if (got <= 0) return got;
  return pwrite(to, bytes.data(), static_cast<std::size_t>(got), offset);
}

}  // namespace

RecordSpool::RecordSpool(std::string folder, SpoolLimits limits)
    : folder_(std::move(folder)), limits_(limits) {}

// The zeros make names sort as numbers do.
std::string RecordSpool::path_of(std::uint64_t first_number) const {
  std::array<char, 32> name{};
  std::snprintf(name.data(), name.size(), "%020llu", static_cast<unsigned long long>(first_number));
  return folder_ + "/" + name.data() + std::string(ending);
}

Result<RecordSpool> RecordSpool::open(std::string folder, SpoolLimits limits) {
  if (limits.file_bytes == 0 || limits.all_bytes < limits.file_bytes) {
    return fail(ErrorCode::invalid_argument, "the log of requests holds at least one file", folder);
  }
  RecordSpool spool(std::move(folder), limits);
  if (mkdir(spool.folder_.c_str(), 0700) != 0 && errno != EEXIST) {
    return spool_error("cannot make the folder of requests", spool.folder_);
  }
  if (Result<void> found = spool.find_files(); !found) return tl::unexpected(found.error());
  return spool;
}

Result<void> RecordSpool::find_files() {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder_, error)) {
    const std::string name = entry.path().filename().string();
    File file;
    const auto [end, bad] =
        std::from_chars(name.data(), name.data() + name.size(), file.first_number);
    if (bad != std::errc() || std::string_view(end) != ending || !entry.is_regular_file(error)) {
      continue;
    }
    file.bytes = entry.file_size(error);
    files_.push_back(file);
  }
  if (error) {
    return fail(ErrorCode::unavailable, "cannot read the folder: " + error.message(), folder_);
  }
  std::ranges::sort(files_, {}, &File::first_number);
  if (files_.empty()) return begin_file();
  next_number_ = files_.front().first_number;
  const std::string path = path_of(files_.back().first_number);
  current_.reset(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!current_.valid()) return spool_error("cannot open", path);
  return {};
}

Result<void> RecordSpool::begin_file() {
  // A line that has only begun belongs to the new file, whole.
  const std::string rest(cutter_.pending());
  const std::string path = path_of(next_number_);
  const std::string fresh = folder_ + "/fresh";
  posix::Fd fd(::open(fresh.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!fd.valid() ||
      pwrite(fd.get(), rest.data(), rest.size(), 0) != static_cast<ssize_t>(rest.size()) ||
      rename(fresh.c_str(), path.c_str()) != 0) {
    return spool_error("cannot begin a file of requests", path);
  }
  current_ = std::move(fd);
  files_.push_back({next_number_, rest.size()});
  reading_ = files_.size() - 1;
  read_bytes_ = rest.size();
  drop_oldest();
  return {};
}

void RecordSpool::drop_oldest() {
  std::uint64_t all = 0;
  for (const File& file : files_) all += file.bytes;
  // Room for the one that is written to, whole.
  while (files_.size() > 1 && all - files_.back().bytes + limits_.file_bytes > limits_.all_bytes) {
    all -= files_.front().bytes;
    std::remove(path_of(files_.front().first_number).c_str());
    files_.erase(files_.begin());
    if (reading_ > 0) --reading_;
  }
}

Result<void> RecordSpool::take(int pipe_fd) {
  for (;;) {
    File& file = files_.back();
    auto offset = static_cast<loff_t>(file.bytes);
    ssize_t moved =
        splice(pipe_fd, nullptr, current_.get(), &offset, piece, SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
    if (moved < 0 && errno == EINVAL) moved = copy(pipe_fd, current_.get(), offset);
    if (moved < 0 && errno == EINTR) continue;
    if (moved == 0 || (moved < 0 && errno == EAGAIN)) return {};
    if (moved < 0) return spool_error("cannot write", path_of(file.first_number));
    file.bytes += static_cast<std::uint64_t>(moved);
  }
}

void RecordSpool::read_file(int fd, const Each& each) {
  std::array<char, 65536> bytes{};
  for (;;) {
    const ssize_t got = pread(fd, bytes.data(), bytes.size(), static_cast<off_t>(read_bytes_));
    if (got <= 0) return;
    read_bytes_ += static_cast<std::uint64_t>(got);
    cutter_.feed({bytes.data(), static_cast<std::size_t>(got)}, [&](std::string_view line) {
      if (const auto record = parse_record(line)) each(next_number_++, *record);
    });
  }
}

void RecordSpool::read(const Each& each) {
  // All but the last are there only after a start: they are read once, to their end.
  for (; reading_ + 1 < files_.size(); ++reading_) {
    next_number_ = files_[reading_].first_number;
    const posix::Fd fd(::open(path_of(next_number_).c_str(), O_RDONLY | O_CLOEXEC));
    if (fd.valid()) read_file(fd.get(), each);
    cutter_.reset();
    read_bytes_ = 0;
    next_number_ = files_[reading_ + 1].first_number;
  }
  read_file(current_.get(), each);
  // A full one is followed by a new one, which fails only where nothing can be written: then this
  // one goes on.
  if (files_.back().bytes >= limits_.file_bytes) std::ignore = begin_file();
}

HandedOn read_handed_on(const std::string& path) {
  std::ifstream in(path);
  HandedOn handed;
  std::int64_t until = 0;
  if (in >> handed.number >> until) {
    handed.until = Time(until);
    return handed;
  }
  return {};
}

Result<void> write_handed_on(const std::string& path, const HandedOn& handed) {
  const std::string fresh = path + ".new";
  const std::string text =
      std::to_string(handed.number) + " " + std::to_string(handed.until.us) + "\n";
  posix::Fd fd(::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!fd.valid() ||
      ::write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
      rename(fresh.c_str(), path.c_str()) != 0) {
    return spool_error("cannot write", path);
  }
  return {};
}

}  // namespace neap::gateway
