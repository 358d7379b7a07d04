#include "backend/local/task_log.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <memory>

#include "backend/local/durable_file.h"

namespace neap::local {
namespace {

constexpr std::string_view log_prefix = "log.";
constexpr std::int64_t keep_free_usually = 256 * 1024 * 1024;
constexpr std::int64_t look_every = 1024 * 1024;

std::string file_name(std::int64_t offset) {
  char name[40];
  std::snprintf(name, sizeof name, "log.%018lld", static_cast<long long>(offset));
  return name;
}

// Offsets of the files of the log, ascending.
std::vector<std::int64_t> offsets_in(const std::string& directory) {
  std::vector<std::int64_t> offsets;
  const std::unique_ptr<DIR, int (*)(DIR*)> open(::opendir(directory.c_str()), ::closedir);
  if (!open) return offsets;
  while (const dirent* entry = ::readdir(open.get())) {
    const std::string_view name = entry->d_name;
    if (!name.starts_with(log_prefix)) continue;
    std::int64_t offset = 0;
    const char* last = name.data() + name.size();
    const auto [end, error] = std::from_chars(name.data() + log_prefix.size(), last, offset);
    if (error == std::errc{} && end == last) offsets.push_back(offset);
  }
  std::sort(offsets.begin(), offsets.end());
  return offsets;
}

std::int64_t size_of(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 ? static_cast<std::int64_t>(info.st_size) : 0;
}

}  // namespace

bool TaskLog::open_next() {
  const std::string path = directory_ + "/" + file_name(end_);
  file_.reset(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600));
  file_size_ = 0;
  if (file_.valid()) remove_old();
  return file_.valid();
}

void TaskLog::remove_old() const {
  const std::vector<std::int64_t> offsets = offsets_in(directory_);
  const auto keep = static_cast<std::size_t>(std::max(limits_.files, 1));
  for (std::size_t i = 0; i + keep < offsets.size(); ++i) {
    (void)::unlink((directory_ + "/" + file_name(offsets[i])).c_str());
  }
}

bool TaskLog::has_room() {
  if (unlooked_ > 0) return true;
  struct statvfs disk {};
  if (::statvfs(directory_.c_str(), &disk) != 0) return true;
  const auto block = static_cast<std::int64_t>(disk.f_frsize);
  const std::int64_t part = static_cast<std::int64_t>(disk.f_blocks) / 20 * block;
  const std::int64_t keep = limits_.keep_free.value_or(std::min(keep_free_usually, part));
  const std::int64_t spare = static_cast<std::int64_t>(disk.f_bavail) * block - keep;
  // Many tasks write at a time, so each looks again long before what is spare can be used up.
  unlooked_ = std::min(spare / 16, look_every);
  return spare > 0;
}

void TaskLog::put(std::string_view bytes) {
  while (!bytes.empty()) {
    if (!has_room()) {
      lost_bytes_ += static_cast<std::int64_t>(bytes.size());
      return;
    }
    const ssize_t n = file_.valid() ? ::write(file_.get(), bytes.data(), bytes.size()) : -1;
    if (n < 0 && file_.valid() && errno == EINTR) continue;
    if (n <= 0) {
      lost_bytes_ += static_cast<std::int64_t>(bytes.size());
      return;
    }
    unlooked_ -= n;
    file_size_ += n;
    end_ += n;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
}

void TaskLog::write(std::string_view bytes) {
  while (!bytes.empty()) {
    if (!file_.valid() && !open_next()) {
      lost_bytes_ += static_cast<std::int64_t>(bytes.size());
      return;
    }
    if (lost_bytes_ > lost_told_) {
      const std::int64_t lost = lost_bytes_;
      put("\n[neap: " + std::to_string(lost - lost_told_) + " bytes of output lost]\n");
      if (lost_bytes_ == lost) lost_told_ = lost;
      lost_bytes_ = lost;  // the notice itself does not count
    }
    const auto room =
        static_cast<std::size_t>(std::max<std::int64_t>(limits_.file_bytes - file_size_, 0));
    if (bytes.size() <= room) return put(bytes);
    // Files end between lines where a line feed is in reach.
    const std::size_t feed = room == 0 ? std::string_view::npos : bytes.rfind('\n', room - 1);
    const bool at_feed = feed != std::string_view::npos;
    const std::size_t cut = at_feed ? feed + 1 : room;
    put(bytes.substr(0, cut));
    bytes.remove_prefix(cut);
    file_.reset();
  }
}

Result<LogPart> read_log(const std::string& directory, std::int64_t offset, std::size_t want) {
  const std::vector<std::int64_t> offsets = offsets_in(directory);
  if (offsets.empty()) return LogPart{};
  LogPart part;
  part.end = offsets.back() + size_of(directory + "/" + file_name(offsets.back()));
  part.offset = std::clamp(offset, offsets.front(), part.end);
  while (part.bytes.size() < want) {
    const std::int64_t at = part.offset + static_cast<std::int64_t>(part.bytes.size());
    if (at >= part.end) break;
    const auto next = std::upper_bound(offsets.begin(), offsets.end(), at);
    const std::int64_t base = *std::prev(next);
    const std::string path = directory + "/" + file_name(base);
    const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file.valid()) return tl::unexpected(system_error("open", path));
    const std::size_t old = part.bytes.size();
    part.bytes.resize(want);
    const ssize_t n = ::pread(file.get(), part.bytes.data() + old, want - old, at - base);
    part.bytes.resize(old + static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
    if (n <= 0) break;
  }
  return part;
}

Result<std::int64_t> log_tail(const std::string& directory, std::int64_t lines) {
  constexpr std::size_t reach = 1024 * 1024;
  const auto probe = read_log(directory, 0, 0);
  if (!probe) return tl::unexpected(probe.error());
  const std::int64_t from =
      std::max<std::int64_t>(probe->end - static_cast<std::int64_t>(reach), 0);
  const auto part = read_log(directory, from, reach);
  if (!part) return tl::unexpected(part.error());
  std::string_view text = part->bytes;
  if (lines <= 0) return part->offset + static_cast<std::int64_t>(text.size());
  if (text.ends_with('\n')) text.remove_suffix(1);
  for (std::size_t at = text.size(); lines > 0; --lines) {
    at = text.substr(0, at).rfind('\n');
    if (at == std::string_view::npos) return part->offset;
    if (lines == 1) return part->offset + static_cast<std::int64_t>(at) + 1;
  }
  return part->offset;
}

}  // namespace neap::local
