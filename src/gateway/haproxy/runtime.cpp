#include "gateway/haproxy/runtime.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "posix/fd.h"

namespace neap::gateway {
namespace {

constexpr std::size_t answer_max = std::size_t{64} << 20;
constexpr timeval patience{.tv_sec = 2, .tv_usec = 0};

tl::unexpected<Error> unreachable(const std::string& path, const char* doing) {
  return fail(ErrorCode::unavailable,
              std::string("the proxy's control socket: ") + doing + ": " + std::strerror(errno),
              path);
}

Result<posix::Fd> connect_to(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) {
    return fail(ErrorCode::invalid_argument, "a UNIX socket's path has at most 107 characters",
                path);
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  posix::Fd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return unreachable(path, "socket");
  setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return unreachable(path, "connect");
  }
  return fd;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

std::int64_t number_or_zero(std::string_view text) {
  std::int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// Columns by name: their places differ between versions.
struct Columns {
  std::size_t backend, server, queued, in_flight, limit, status, type, address;
  std::size_t width;
};

Result<Columns> find_columns(std::string_view header) {
  if (header.starts_with("# ")) header.remove_prefix(2);
  const std::vector<std::string_view> names = split(header, ',');
  std::string missing;
  auto find = [&](std::string_view name) {
    const auto at = std::ranges::find(names, name);
    if (at == names.end()) missing = name;
    return static_cast<std::size_t>(at - names.begin());
  };
  const Columns columns{.backend = find("pxname"),
                        .server = find("svname"),
                        .queued = find("qcur"),
                        .in_flight = find("scur"),
                        .limit = find("slim"),
                        .status = find("status"),
                        .type = find("type"),
                        .address = find("addr"),
                        .width = names.size()};
  if (!missing.empty()) {
    return fail(ErrorCode::internal, "the proxy's statistics lack the column '" + missing + "'");
  }
  return columns;
}

}  // namespace

Result<std::string> run_command(const std::string& socket_path, std::string_view command) {
  Result<posix::Fd> fd = connect_to(socket_path);
  if (!fd) return tl::unexpected(fd.error());
  std::string line(command);
  line += '\n';
  const ssize_t sent = send(fd->get(), line.data(), line.size(), MSG_NOSIGNAL);
  if (sent != static_cast<ssize_t>(line.size())) return unreachable(socket_path, "send");
  shutdown(fd->get(), SHUT_WR);  // the master's socket answers and waits for more without it
  std::string answer;
  std::array<char, 16384> chunk{};
  for (;;) {
    const ssize_t got = recv(fd->get(), chunk.data(), chunk.size(), 0);
    if (got == 0) return answer;
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return unreachable(socket_path, "receive");
    answer.append(chunk.data(), static_cast<std::size_t>(got));
    if (answer.size() > answer_max) {
      return fail(ErrorCode::unavailable, "the proxy's answer is over 64 MiB", socket_path);
    }
  }
}

Result<pid_t> listener_of(const std::string& socket_path) {
  Result<posix::Fd> fd = connect_to(socket_path);
  if (!fd) return tl::unexpected(fd.error());
  ucred peer{};
  socklen_t size = sizeof peer;
  if (getsockopt(fd->get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
    return unreachable(socket_path, "peer credentials");
  }
  return peer.pid;
}

Result<ProxyStatistics> read_statistics(std::string_view csv) {
  ProxyStatistics statistics;
  Result<Columns> columns = fail(ErrorCode::internal, "the proxy's statistics have no header");
  for (const std::string_view line : split(csv, '\n')) {
    if (line.empty()) continue;
    if (line.starts_with('#')) {
      columns = find_columns(line);
      continue;
    }
    if (!columns) return tl::unexpected(columns.error());
    const std::vector<std::string_view> fields = split(line, ',');
    if (fields.size() < columns->width) {
      return fail(ErrorCode::internal, "a short line in the proxy's statistics");
    }
    const std::string_view type = fields[columns->type];
    if (type == "1") {
      statistics.backends.push_back({.backend = std::string(fields[columns->backend]),
                                     .queued = number_or_zero(fields[columns->queued])});
    }
    if (type != "2") continue;
    const std::string_view address = fields[columns->address];
    const std::string_view port = address.substr(address.rfind(':') + 1);
    const std::string_view status = fields[columns->status];
    statistics.servers.push_back(
        {.backend = std::string(fields[columns->backend]),
         .server = std::string(fields[columns->server]),
         .port = static_cast<std::uint16_t>(number_or_zero(port)),
         .max_concurrency = static_cast<std::int32_t>(number_or_zero(fields[columns->limit])),
         .in_flight = number_or_zero(fields[columns->in_flight]),
         .queued = number_or_zero(fields[columns->queued]),
         .up = status == "no check" || status == "UP"});
  }
  if (!columns) return tl::unexpected(columns.error());
  return statistics;
}

WorkerList read_workers(std::string_view text) {
  WorkerList workers;
  bool among_old = false;
  for (const std::string_view line : split(text, '\n')) {
    if (line.starts_with("# old workers")) among_old = true;
    if (line.starts_with('#') || line.find("worker") == std::string_view::npos) continue;
    const auto pid = static_cast<pid_t>(number_or_zero(line));
    if (pid <= 0) continue;
    if (among_old) {
      workers.old.push_back(pid);
    } else {
      workers.current = pid;
    }
  }
  return workers;
}

}  // namespace neap::gateway
