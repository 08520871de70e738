#include "lipsa/experiment/sweep_journal.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cmath>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <system_error>

#include "core/check.hpp"
#include "lipsa/core/atomic_file.hpp"

namespace lipsa {
namespace {

using nlohmann::ordered_json;

ordered_json to_json(double x) {
  return std::isfinite(x) ? ordered_json(x) : ordered_json(fmt::format("{}", x));
}

double to_double(const ordered_json& json) {
  if (!json.is_string()) {
    return json.get<double>();
  }
  const auto text = json.get<std::string>();
  return text == "inf"    ? std::numeric_limits<double>::infinity()
         : text == "-inf" ? -std::numeric_limits<double>::infinity()
                          : std::numeric_limits<double>::quiet_NaN();
}

/// What a row holds beyond its configuration, which its number names.
ordered_json to_json(Index k, const SweepRow& row) {
  ordered_json json{{"row", k},
                    {"local_norm", to_json(row.local_norm)},
                    {"residual", to_json(row.residual)},
                    {"lower_bounds", row.lower_bounds},
                    {"median", to_json(row.lower_bound_median)},
                    {"source", row.lower_bound_source},
                    {"lower_bound_witness", to_json(row.lower_bound_witness)},
                    {"witness", row.witness},
                    {"status", row.status},
                    {"bounds", ordered_json::array()}};
  for (const SweepBound& bound : row.bounds) {
    json["bounds"].push_back({bound.name, bound.refuted, to_json(bound.value)});
  }
  return json;
}

void from_json(const ordered_json& json, SweepRow& row) {
  row.local_norm = to_double(json.at("local_norm"));
  row.residual = to_double(json.at("residual"));
  row.lower_bounds = json.at("lower_bounds").get<std::vector<double>>();
  row.lower_bound_median = to_double(json.at("median"));
  row.lower_bound_source = json.at("source").get<std::string>();
  row.lower_bound_witness = to_double(json.at("lower_bound_witness"));
  row.witness = json.at("witness").get<std::string>();
  row.status = json.at("status").get<std::string>();
  for (const auto& bound : json.at("bounds")) {
    row.bounds.push_back(
        {bound.at(0).get<std::string>(), bound.at(1).get<bool>(), to_double(bound.at(2))});
  }
}

[[noreturn]] void refuse_to_write(const std::filesystem::path& path) {
  throw WriteError(fmt::format("{}: {}", path.string(), std::generic_category().message(errno)));
}

}  // namespace

SweepJournal::SweepJournal(std::filesystem::path path, const Sweep& sweep, bool resume)
    : path_(std::move(path)), rows_(static_cast<std::size_t>(sweep.size())) {
  std::error_code ignored;
  const auto status = std::filesystem::status(path_, ignored);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    throw WriteError(fmt::format("{}: is no regular file", path_.string()));
  }
  file_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file_ < 0) {
    refuse_to_write(path_);
  }
  try {
    require(::flock(file_, LOCK_EX | LOCK_NB) == 0,
            "{}: another process is writing this sweep; choose another folder with --out",
            path_.string());
    std::ifstream in(path_, std::ios::binary);
    std::string text{std::istreambuf_iterator<char>(in), {}};
    text.erase(text.find_last_of('\n') + 1);  // npos + 1 = 0: a torn first line is nothing
    if (text.empty() || text.find('\n') + 1 == text.size()) {  // no row of it: nothing to lose
      if (::ftruncate(file_, 0) != 0) {
        refuse_to_write(path_);
      }
      write(sweep.identity() + "\n");
      return;
    }
    require(resume,
            "{}: here lies an unfinished sweep; continue it with --resume, or delete the file",
            path_.string());
    if (::ftruncate(file_, static_cast<off_t>(text.size())) != 0) {
      refuse_to_write(path_);
    }
    std::size_t line_number = 0;
    for (std::size_t first = 0; first < text.size(); ++line_number) {
      const std::size_t end = text.find('\n', first);
      const std::string_view line(text.data() + first, end - first);
      first = end + 1;
      if (line_number == 0) {
        require(line == sweep.identity(),
                "{}: belongs to a sweep of other settings, weights, tokens or of another version; "
                "delete it, or choose another folder with --out",
                path_.string());
        continue;
      }
      try {
        const auto json = ordered_json::parse(line);
        const auto k = json.at("row").get<Index>();
        auto& row = rows_.at(static_cast<std::size_t>(k));
        row = sweep.configuration(k);
        from_json(json, *row);
      } catch (const std::exception& e) {
        throw std::runtime_error(fmt::format("{}: line {}: expected a row, found '{}' ({})",
                                             path_.string(), line_number + 1, line.substr(0, 40),
                                             e.what()));
      }
    }
  } catch (...) {
    ::close(file_);
    throw;
  }
}

SweepJournal::~SweepJournal() {
  if (file_ >= 0) {
    ::close(file_);
  }
}

void SweepJournal::write(const std::string& line) const {
  std::size_t done = 0;
  while (done < line.size()) {
    const ssize_t count = ::write(file_, line.data() + done, line.size() - done);
    if (count < 0 && errno != EINTR) {
      refuse_to_write(path_);
    }
    done += count > 0 ? static_cast<std::size_t>(count) : 0;
  }
  if (::fsync(file_) != 0) {
    refuse_to_write(path_);
  }
}

void SweepJournal::append(Index k, const SweepRow& row) {
  write(to_json(k, row).dump() + "\n");
  rows_.at(static_cast<std::size_t>(k)) = row;
}

void SweepJournal::remove() {
  std::error_code ignored;
  std::filesystem::remove(path_, ignored);
}

}  // namespace lipsa
