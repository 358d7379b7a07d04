#include "backend/local/supervisors.h"

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <charconv>
#include <future>

#include "backend/local/attachment.h"
#include "backend/local/durable_file.h"
#include "backend/local/launcher.h"

namespace neap::local {
namespace {

std::optional<AllocationId> allocation_named(std::string_view name) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), value);
  if (error != std::errc{} || end != name.data() + name.size()) return std::nullopt;
  return AllocationId(value);
}

}  // namespace

std::optional<AllocationId> newest_allocation(const std::string& run_directory) {
  std::optional<AllocationId> newest;
  const std::unique_ptr<DIR, int (*)(DIR*)> open(::opendir((run_directory + "/tasks").c_str()),
                                                 ::closedir);
  if (!open) return newest;
  while (const dirent* entry = ::readdir(open.get())) {
    const auto allocation = allocation_named(entry->d_name);
    if (allocation && (!newest || *newest < *allocation)) newest = allocation;
  }
  return newest;
}

Result<std::unique_ptr<Supervisors>> Supervisors::open(Settings settings, OnReport on_report) {
  if (!settings.run_directory.starts_with('/')) {
    return fail(ErrorCode::invalid_argument,
                "run directory: expected an absolute path, not '" + settings.run_directory + "'");
  }
  if (::access(settings.executable.c_str(), X_OK) != 0) {
    return tl::unexpected(system_error("run", settings.executable));
  }
  for (const std::string& path : {settings.run_directory, settings.run_directory + "/tasks"}) {
    if (auto made = make_directory(path, 0711); !made) return tl::unexpected(made.error());
  }
  Fd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.valid()) return tl::unexpected(system_error("eventfd", ""));
  return std::unique_ptr<Supervisors>(
      new Supervisors(std::move(settings), std::move(on_report), std::move(wake)));
}

Supervisors::Supervisors(Settings settings, OnReport on_report, Fd wake)
    : settings_(std::move(settings)), on_report_(std::move(on_report)), wake_(std::move(wake)) {
  loop_.watch(wake_.get(), EPOLLIN, [this](std::uint32_t) { run_posted(); });
  // Signals are for the daemon's main thread.
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  (void)::pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { loop_.run(); });
  (void)::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Supervisors::~Supervisors() {
  post([this] { loop_.stop(); });
  thread_.join();
  attachments_.clear();
}

void Supervisors::post(std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    posted_.push_back(std::move(work));
  }
  const std::uint64_t one = 1;
  (void)!::write(wake_.get(), &one, sizeof one);
}

void Supervisors::run_posted() {
  std::uint64_t count = 0;
  (void)!::read(wake_.get(), &count, sizeof count);
  std::deque<std::function<void()>> work;
  {
    const std::lock_guard lock(mutex_);
    work.swap(posted_);
  }
  for (const auto& piece : work) piece();
}

std::string Supervisors::directory_of(AllocationId allocation) const {
  return settings_.run_directory + "/tasks/" + std::to_string(allocation.value);
}

Attachment& Supervisors::attach(AllocationId allocation) {
  auto& place = attachments_[allocation];
  if (!place) {
    place = std::make_unique<Attachment>(loop_, allocation, directory_of(allocation), on_report_);
  }
  return *place;
}

Result<void> Supervisors::adopt(
    const std::function<void(const std::vector<FoundAllocation>&)>& found) {
  std::promise<Result<void>> promise;
  post([&] {
    const auto all = look_around();
    if (!all) return promise.set_value(tl::unexpected(all.error()));
    found(*all);
    for (const FoundAllocation& one : *all) {
      if (one.state != FoundState::never_started) attach(one.allocation).adopt(one.task);
    }
    promise.set_value({});
  });
  return promise.get_future().get();
}

Result<std::vector<FoundAllocation>> Supervisors::look_around() {
  const std::string tasks = settings_.run_directory + "/tasks";
  const std::unique_ptr<DIR, int (*)(DIR*)> open(::opendir(tasks.c_str()), ::closedir);
  if (!open) return tl::unexpected(system_error("open", tasks));
  std::map<AllocationId, FoundAllocation> found;
  while (const dirent* entry = ::readdir(open.get())) {
    const auto allocation = allocation_named(entry->d_name);
    if (!allocation) continue;
    const std::string directory = directory_of(*allocation);
    const auto text = read_bounded(spec_path(directory), spec_size_limit);
    if (!text) continue;  // the daemon died before the spec was whole: never started
    FoundAllocation one{*allocation, {}, std::nullopt, {}};
    // One damaged file must not keep all the others from being looked after.
    if (auto task = parse_spec(*text)) {
      one.task = std::move(*task);
    } else {
      one.trouble = spec_path(directory) + ": " + task.error().message;
    }
    const bool supervised = supervisor_of(directory).has_value();
    one.state = supervised               ? FoundState::supervised
                : was_started(directory) ? FoundState::unsupervised
                                         : FoundState::never_started;
    found.emplace(*allocation, std::move(one));
  }
  std::vector<FoundAllocation> out;
  for (auto& [allocation, one] : found) out.push_back(std::move(one));
  return out;
}

void Supervisors::start(SupervisedTask task) {
  post([this, task = std::move(task)] {
    attach(task.allocation).start(settings_.executable, task);
  });
}

void Supervisors::send(AllocationId allocation, ControlCommand command) {
  post([this, allocation, command] {
    const auto found = attachments_.find(allocation);
    if (found != attachments_.end()) found->second->send(command);
  });
}

void Supervisors::acknowledge(AllocationId allocation, std::uint64_t sequence) {
  post([this, allocation, sequence] {
    const auto found = attachments_.find(allocation);
    if (found == attachments_.end()) return;
    found->second->acknowledge(sequence);
    if (found->second->removed()) attachments_.erase(found);
  });
}

void Supervisors::forget(AllocationId allocation) {
  post([this, allocation] {
    const auto found = attachments_.find(allocation);
    if (found == attachments_.end()) return;
    found->second->forget();
    if (found->second->removed()) attachments_.erase(found);
  });
}

}  // namespace neap::local
