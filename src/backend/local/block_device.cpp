#include "backend/local/block_device.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string_view>
#include <system_error>

#include "backend/local/durable_file.h"

namespace neap::local {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t small_file = 64 * 1024;
constexpr std::size_t mounts_limit = 16 * 1024 * 1024;

std::string line_of(const std::string& path) {
  std::string text = read_bounded(path, small_file).value_or(std::string());
  return text.substr(0, text.find('\n'));
}

std::string number_of(dev_t device) {
  return std::to_string(major(device)) + ":" + std::to_string(minor(device));
}

std::string word(std::string_view& rest) {
  const std::string_view first = rest.substr(0, rest.find(' '));
  rest.remove_prefix(std::min(first.size() + 1, rest.size()));
  return std::string(first);
}

struct Mount {
  std::string type;
  std::string source;
};

// The mount with this device number in /proc/self/mountinfo:
// "36 35 98:0 /root /point options - type source options".
Mount mount_of(const std::string& number) {
  const std::string text =
      read_bounded("/proc/self/mountinfo", mounts_limit).value_or(std::string());
  std::string_view rest = text;
  while (!rest.empty()) {
    std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    (void)word(line);
    (void)word(line);
    if (word(line) != number) continue;
    const std::size_t dash = line.find(" - ");
    if (dash == std::string_view::npos) continue;
    line.remove_prefix(dash + 3);
    Mount out;
    out.type = word(line);
    out.source = word(line);
    return out;
  }
  return {"unknown", ""};
}

// Of a partition the disk it is on.
Result<std::string> whole_disk(const std::string& number, const std::string& path) {
  const std::string entry = "/sys/dev/block/" + number;
  std::error_code error;
  const fs::path real = fs::canonical(entry, error);
  if (error) return fail(ErrorCode::unavailable, "lies on no block device", path);
  if (!fs::exists(real / "partition", error)) return number;
  const std::string parent = line_of((real.parent_path() / "dev").string());
  if (parent.empty()) return fail(ErrorCode::unavailable, "its disk is not known", path);
  return parent;
}

}  // namespace

Result<std::string> disk_of(const std::string& path) {
  std::string there = path;
  struct stat info {};
  while (::stat(there.c_str(), &info) != 0) {
    if (there.empty() || there == "/") return tl::unexpected(system_error("stat", path));
    there = fs::path(there).parent_path().string();
  }
  const dev_t device = S_ISBLK(info.st_mode) ? info.st_rdev : info.st_dev;
  if (major(device) != 0) return whole_disk(number_of(device), path);
  // btrfs and others number their file systems apart from the disk, which they name.
  const Mount mount = mount_of(number_of(device));
  struct stat source {};
  if (mount.source.starts_with('/') && ::stat(mount.source.c_str(), &source) == 0 &&
      S_ISBLK(source.st_mode)) {
    return whole_disk(number_of(source.st_rdev), path);
  }
  return fail(ErrorCode::unavailable,
              "lies on " + mount.type + ", no disk whose reads and writes can be limited", path);
}

namespace {

// "00000000:3B:00.0" of the device with this UUID; its folder in sysfs has four digits of domain.
std::string pci_address_of(const std::string& uuid, const std::string& driver) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(driver, error)) {
    const std::string text =
        read_bounded((entry.path() / "information").string(), small_file).value_or(std::string());
    if (text.find(uuid) == std::string::npos) continue;
    std::string address = entry.path().filename().string();
    if (const std::size_t colon = address.find(':'); colon > 4 && colon != std::string::npos) {
      address.erase(0, colon - 4);
    }
    for (char& c : address) {
      if (c >= 'A' && c <= 'F') c = static_cast<char>(c - 'A' + 'a');
    }
    return address;
  }
  return "";
}

}  // namespace

Result<std::string> processors_near(const std::vector<std::string>& devices,
                                    const HostTrees& trees) {
  std::set<std::string> lists;
  for (const std::string& uuid : devices) {
    if (uuid.starts_with("SIM-")) continue;
    const std::string address = pci_address_of(uuid, trees.driver);
    const std::string list =
        address.empty() ? "" : line_of(trees.pci + "/" + address + "/local_cpulist");
    if (list.empty()) {
      return fail(ErrorCode::unavailable, "the processors near it are not visible here", uuid);
    }
    lists.insert(list);
  }
  std::string out;
  for (const std::string& list : lists) out += (out.empty() ? "" : ",") + list;
  return out;
}

}  // namespace neap::local
