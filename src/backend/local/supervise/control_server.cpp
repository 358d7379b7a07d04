#include "backend/local/supervise/control_server.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <vector>

#include "backend/local/json.h"

namespace neap::local {
namespace {

constexpr std::size_t control_outbox_limit = 32 * 1024;
constexpr std::size_t control_connections_limit = 8;

}  // namespace

Result<std::unique_ptr<ControlServer>> ControlServer::open(EventLoop& loop, const std::string& path,
                                                           Spool& spool, std::string greeting,
                                                           OnCommand on_command) {
  auto listening = listen_on(path, std::nullopt);
  if (!listening) return tl::unexpected(listening.error());
  return std::unique_ptr<ControlServer>(new ControlServer(
      loop, std::move(*listening), path, spool, std::move(greeting), std::move(on_command)));
}

ControlServer::ControlServer(EventLoop& loop, Fd listening, std::string path, Spool& spool,
                             std::string greeting, OnCommand on_command)
    : loop_(loop),
      listening_(std::move(listening)),
      path_(std::move(path)),
      spool_(spool),
      greeting_(std::move(greeting)),
      on_command_(std::move(on_command)) {
  loop_.watch(listening_.get(), EPOLLIN, [this](std::uint32_t) { accept_all(); });
}

ControlServer::~ControlServer() {
  for (const auto& [fd, connection] : connections_) loop_.forget(fd);
  loop_.forget(listening_.get());
  (void)::unlink(path_.c_str());
}

void ControlServer::accept_all() {
  for (;;) {
    Fd fd(::accept4(listening_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!fd.valid()) return;
    const auto uid = peer_uid(fd.get());
    if (!uid || (*uid != ::geteuid() && *uid != 0)) continue;
    if (connections_.size() >= control_connections_limit) {
      // A daemon that comes back must get in, whatever its dead predecessors left open.
      close(connections_.begin()->first);
    }
    const int number = fd.get();
    auto connection = std::make_unique<Connection>();
    connection->fd = std::move(fd);
    connection->outbox.push(greeting_);
    connections_[number] = std::move(connection);
    loop_.watch(number, EPOLLIN | EPOLLOUT,
                [this, number](std::uint32_t events) { on_connection(number, events); });
  }
}

void ControlServer::on_connection(int fd, std::uint32_t events) {
  Connection& connection = *connections_.at(fd);
  if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0U) {
    const auto bytes = receive_some(fd);
    if (!bytes) return close(fd);
    connection.lines.feed(*bytes);
    while (const auto line = connection.lines.next()) on_line(connection, *line);
  }
  if (!pump(connection)) close(fd);
}

void ControlServer::on_line(Connection& connection, const LineSplitter::Line& line) {
  const auto command = parse_control_line(line.too_long ? "" : line.text);
  if (!command) {
    if (connection.outbox.size() > control_outbox_limit) return;
    connection.outbox.push(JsonObject().add("error", command.error().message).line() + "\n");
    return;
  }
  if (const auto* resume = std::get_if<ResumeAfter>(&*command)) {
    connection.streaming = true;
    connection.position = spool_.position_after(resume->sequence);
    return;
  }
  on_command_(*command);
}

bool ControlServer::pump(Connection& connection) {
  Outbox::State state = Outbox::State::drained;
  for (;;) {
    state = connection.outbox.flush(connection.fd.get());
    if (state != Outbox::State::drained || !connection.streaming) break;
    const std::string lines = spool_.read(connection.position, control_outbox_limit);
    if (lines.empty()) break;
    connection.outbox.push(lines);
  }
  if (state == Outbox::State::broken) return false;
  const std::uint32_t out =
      state == Outbox::State::waiting ? static_cast<std::uint32_t>(EPOLLOUT) : 0U;
  loop_.change(connection.fd.get(), EPOLLIN | out);
  return true;
}

void ControlServer::publish() {
  std::vector<int> broken;
  for (auto& [fd, connection] : connections_) {
    if (!pump(*connection)) broken.push_back(fd);
  }
  for (const int fd : broken) close(fd);
}

void ControlServer::close(int fd) {
  loop_.forget(fd);
  connections_.erase(fd);
}

}  // namespace neap::local
