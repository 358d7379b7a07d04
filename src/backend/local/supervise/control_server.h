// The daemon's way into a supervisor: a UNIX socket for its own user. Lines to the daemon are
// the reports of the spool, from where it says it stopped; a slow reader costs no memory, because
// every connection is fed from the spool's file.
//
//   daemon -> {"resume_after":N}                          first
//          -> {"command":"ack","sequence":N}              and checkpoint, yield, withdraw, drain,
//             terminate, kill, see control.h
//   supervisor -> {"supervisor":PID,"epoch":E,"last":N}   first
//              -> {"sequence":…}                          reports
//              -> {"error":"…"}                           a command that was not understood
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "backend/local/control.h"
#include "backend/local/event_loop.h"
#include "backend/local/fd.h"
#include "backend/local/spool.h"
#include "backend/local/unix_socket.h"
#include "core/model/result.h"

namespace neap::local {

class ControlServer {
 public:
  using OnCommand = std::function<void(const ControlCommand&)>;

  [[nodiscard]] static Result<std::unique_ptr<ControlServer>> open(EventLoop& loop,
                                                                   const std::string& path,
                                                                   Spool& spool,
                                                                   std::string greeting,
                                                                   OnCommand on_command);
  ~ControlServer();
  ControlServer(const ControlServer&) = delete;
  ControlServer& operator=(const ControlServer&) = delete;

  // Sends what became durable to all who listen.
  void publish();

 private:
  struct Connection {
    Fd fd;
    LineSplitter lines{control_line_limit};
    Outbox outbox;
    bool streaming = false;
    std::int64_t position = 0;
  };

  ControlServer(EventLoop& loop, Fd listening, std::string path, Spool& spool, std::string greeting,
                OnCommand on_command);
  void accept_all();
  void on_connection(int fd, std::uint32_t events);
  void on_line(Connection& connection, const LineSplitter::Line& line);
  // False when the connection broke.
  [[nodiscard]] bool pump(Connection& connection);
  void close(int fd);

  EventLoop& loop_;
  Fd listening_;
  std::string path_;
  Spool& spool_;
  std::string greeting_;
  OnCommand on_command_;
  std::map<int, std::unique_ptr<Connection>> connections_;
};

}  // namespace neap::local
