#include "backend/local/spool.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "backend/local/durable_file.h"

namespace neap::local {
namespace {

constexpr std::int64_t cut_above = 256 * 1024;
constexpr std::size_t chunk_bytes = 64 * 1024;

std::string spool_path(const std::string& directory) { return directory + "/spool"; }

ssize_t read_at(int fd, char* into, std::size_t size, std::int64_t offset) {
  for (;;) {
    const ssize_t n = ::pread(fd, into, size, offset);
    if (n >= 0 || errno != EINTR) return n;
  }
}

}  // namespace

Result<Spool> Spool::create(const std::string& directory) {
  const std::string path = spool_path(directory);
  Fd file(::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file.valid()) return tl::unexpected(system_error("open", path));
  if (auto synced = sync_directory(directory); !synced) return tl::unexpected(synced.error());
  return Spool(directory, std::move(file));
}

void Spool::append(Report report) {
  report.sequence = next_sequence_++;
  unsynced_ += report_line(report);
  unsynced_.push_back('\n');
}

Result<void> Spool::sync() {
  if (unsynced_.empty()) return {};
  std::string_view rest = unsynced_;
  std::int64_t at = end_ - base_;
  while (!rest.empty()) {
    const ssize_t n = ::pwrite(file_.get(), rest.data(), rest.size(), at);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return tl::unexpected(system_error("write", spool_path(directory_)));
    rest.remove_prefix(static_cast<std::size_t>(n));
    at += n;
  }
  if (::fdatasync(file_.get()) != 0) {
    return tl::unexpected(system_error("fdatasync", spool_path(directory_)));
  }
  end_ = base_ + at;
  durable_sequence_ = next_sequence_ - 1;
  unsynced_.clear();
  if (unsynced_.capacity() > chunk_bytes) unsynced_.shrink_to_fit();
  return {};
}

std::string Spool::read(std::int64_t& position, std::size_t want) const {
  position = std::max(position, base_);
  std::string out;
  for (;;) {
    const auto left = static_cast<std::size_t>(end_ - position) - out.size();
    if (left == 0) break;
    const std::size_t old = out.size();
    const std::size_t size = std::min(left, std::max(want, std::size_t{4096}));
    out.resize(old + size);
    const ssize_t n = read_at(file_.get(), out.data() + old, size,
                              position - base_ + static_cast<std::int64_t>(old));
    out.resize(old + static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
    if (n <= 0) break;
    // A line longer than `want` is read on until it is whole.
    if (const std::size_t last = out.rfind('\n'); last != std::string::npos) {
      out.resize(last + 1);
      break;
    }
  }
  position += static_cast<std::int64_t>(out.size());
  return out;
}

std::int64_t Spool::position_after(std::uint64_t sequence) const {
  if (sequence >= durable_sequence_) return end_;
  std::int64_t position = sequence >= acknowledged_ ? acknowledged_at_ : base_;
  for (;;) {
    std::int64_t next = position;
    const std::string lines = read(next, chunk_bytes);
    if (lines.empty()) return end_;
    std::string_view rest = lines;
    while (!rest.empty()) {
      const std::size_t length = rest.find('\n') + 1;
      const auto found = sequence_of(rest.substr(0, length));
      if (found && *found > sequence) return position;
      position += static_cast<std::int64_t>(length);
      rest.remove_prefix(length);
    }
  }
}

void Spool::acknowledge(std::uint64_t sequence) {
  sequence = std::min(sequence, durable_sequence_);
  if (sequence <= acknowledged_) return;
  acknowledged_at_ = position_after(sequence - 1);
  acknowledged_ = sequence;
  if (acknowledged_at_ - base_ >= cut_above) (void)cut_front();  // tried again at the next one
}

// Writes the rest aside and renames it over the spool: at every instant the name holds every
// report that was not acknowledged.
Result<void> Spool::cut_front() {
  const std::string path = spool_path(directory_);
  const std::string aside = path + ".new";
  Fd fresh(::open(aside.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fresh.valid()) return tl::unexpected(system_error("open", aside));
  for (std::int64_t position = acknowledged_at_; position < end_;) {
    const std::string lines = read(position, chunk_bytes);
    if (lines.empty()) return fail(ErrorCode::internal, "read " + path + ": ends early");
    if (!write_all(fresh.get(), lines)) return tl::unexpected(system_error("write", aside));
  }
  if (::fsync(fresh.get()) != 0) return tl::unexpected(system_error("fsync", aside));
  if (::rename(aside.c_str(), path.c_str()) != 0) {
    return tl::unexpected(system_error("rename", aside));
  }
  file_ = std::move(fresh);
  base_ = acknowledged_at_;
  return sync_directory(directory_);
}

Result<std::vector<Report>> read_spool(const std::string& directory, std::uint64_t after) {
  const std::string path = spool_path(directory);
  Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return tl::unexpected(system_error("open", path));
  std::vector<Report> reports;
  std::string rest;
  std::vector<char> chunk(chunk_bytes);
  for (std::int64_t offset = 0;;) {
    const ssize_t n = read_at(file.get(), chunk.data(), chunk.size(), offset);
    if (n < 0) return tl::unexpected(system_error("read", path));
    if (n == 0) return reports;
    offset += n;
    rest.append(chunk.data(), static_cast<std::size_t>(n));
    std::size_t begin = 0;
    for (std::size_t end = 0; (end = rest.find('\n', begin)) != std::string::npos;) {
      const std::string_view line(rest.data() + begin, end - begin);
      begin = end + 1;
      const auto sequence = sequence_of(line);
      if (sequence && *sequence <= after) continue;
      auto report = parse_report_line(line);
      // Blocks of an append that was cut short by a crash may hold anything: the reports before
      // it are whole, what follows was never told to anybody.
      if (!report) return reports;
      reports.push_back(std::move(*report));
    }
    rest.erase(0, begin);
  }
}

}  // namespace neap::local
