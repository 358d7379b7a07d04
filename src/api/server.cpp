#include "api/server.h"

#include <unistd.h>

#include <utility>

#include "api/authority.h"
#include "api/event_feed.h"
#include "api/http/listener.h"
#include "api/http/router.h"
#include "api/log_feed.h"
#include "api/routes.h"

namespace neap::api {

namespace {

http::ListenerSettings listener_settings(const ServerSettings& settings) {
  http::ListenerSettings out;
  out.streams_max = static_cast<std::size_t>(settings.streams_max);
  out.body_max = static_cast<std::size_t>(settings.body_max_bytes);
  out.workers = static_cast<std::size_t>(settings.workers);
  return out;
}

class ApiServer final : public Server {
 public:
  ApiServer(const ServerSettings& settings, Control& control, EventHub& hub)
      : settings_(settings),
        events_(control, hub, Authority(::geteuid())),
        logs_(control),
        router_(make_router({control, events_, logs_, Authority(::geteuid()),
                             static_cast<std::uint32_t>(::geteuid()),
                             static_cast<std::uint32_t>(::getegid())})) {}

  ~ApiServer() override {
    // The listeners first: they answer what is under way, with the feeds still there.
    tcp_.reset();
    if (!unix_) return;
    unix_.reset();
    ::unlink(settings_.socket_path.c_str());
  }

  Result<void> begin() {
    auto socket = http::listen_unix(settings_.socket_path, settings_.group);
    if (!socket) return tl::unexpected(socket.error());
    auto listener = listen_on(std::move(*socket), listener_settings(settings_));
    if (!listener) return tl::unexpected(listener.error());
    unix_ = std::move(*listener);
    return settings_.tcp ? begin_tcp(*settings_.tcp) : Result<void>();
  }

  [[nodiscard]] std::uint16_t tcp_port() const override { return tcp_port_; }

 private:
  Result<void> begin_tcp(const TcpSettings& tcp) {
    auto token = http::Token::read(tcp.token_file);
    if (!token) return tl::unexpected(token.error());
    auto socket = http::listen_tcp(tcp.listen);
    if (!socket) return tl::unexpected(socket.error());
    tcp_port_ = http::port_of(*socket);
    http::ListenerSettings settings = listener_settings(settings_);
    settings.token = std::move(*token);
    auto listener = listen_on(std::move(*socket), std::move(settings));
    if (!listener) return tl::unexpected(listener.error());
    tcp_ = std::move(*listener);
    return {};
  }

  Result<std::unique_ptr<http::Listener>> listen_on(http::Socket socket,
                                                    http::ListenerSettings settings) {
    return http::Listener::start(std::move(socket), std::move(settings),
                                 [this](const http::Request& request) {
                                   http::Request routed = request;
                                   return router_.route(routed);
                                 });
  }

  const ServerSettings settings_;
  EventFeed events_;
  LogFeed logs_;
  const http::Router router_;
  std::unique_ptr<http::Listener> unix_;
  std::unique_ptr<http::Listener> tcp_;
  std::uint16_t tcp_port_ = 0;
};

}  // namespace

Result<std::unique_ptr<Server>> Server::start(const ServerSettings& settings, Control& control,
                                              EventHub& hub) {
  auto server = std::make_unique<ApiServer>(settings, control, hub);
  if (auto begun = server->begin(); !begun) return tl::unexpected(begun.error());
  return server;
}

}  // namespace neap::api
