#include "lipsa/experiment/language_model_run.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>

#include "core/check.hpp"
#include "core/input_file.hpp"
#include "lipsa/core/atomic_file.hpp"
#include "lipsa/experiment/table.hpp"

namespace lipsa {
namespace {

constexpr std::string_view header =
    "step,train_loss,valid_loss,learning_rate,gradient_norm,status\n";

std::string row_of(const TrainingStep& step, const TextLoss& valid) {
  const auto number = [](double x) { return Cell(x); };
  Table table{{"step", "train_loss", "valid_loss", "learning_rate", "gradient_norm", "status"}, {}};
  table.rows.push_back({std::int64_t{step.step}, number(step.loss),
                        valid.predicted > 0 ? number(valid.nats) : Cell(),
                        number(step.learning_rate),
                        std::isnan(step.gradient_norm) && step.status != StepStatus::taken
                            ? Cell()
                            : number(step.gradient_norm),
                        std::string(to_string(step.status))});
  return format_table(table, TableFormat::csv).substr(header.size());
}

/// The rows of a log up to a step, as they would be if training had not been meant to end there.
std::string rows_up_to(Index last, const LanguageModelRun& run) {
  InputFile file = open_input(run.log);
  std::string line;
  std::getline(file.stream, line);
  if (line + '\n' != header) {
    malformed(run.log.string(), "expected a log of a training, found the line {:?}",
              line.substr(0, 100));
  }
  const auto is_due = [&](Index step) {
    return step % run.log_every == 0 || step % run.evaluate_every == 0;
  };
  // How many of the steps 1, …, t are.
  const auto due_until = [&](Index t) {
    const Index both = run.log_every / std::gcd(run.log_every, run.evaluate_every);
    const Index every_both = both > t / run.evaluate_every ? 0 : t / (both * run.evaluate_every);
    return t / run.log_every + t / run.evaluate_every - every_both;
  };
  std::string rows;
  Index kept = 0;
  Index begin = last + 1;  // the first step of the log, which may have been lost and begun again
  Index before = 0;
  bool other = false;  // a row that would not be there, or with less in it
  bool more = false;   // after such a one
  while (std::getline(file.stream, line)) {
    more = more || other;
    Index step = 0;
    const std::size_t first = line.find(',');
    const std::size_t second = line.find(',', first == std::string::npos ? first : first + 1);
    const std::size_t third = line.find(',', second == std::string::npos ? second : second + 1);
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), step);
    if (std::count(line.begin(), line.end(), ',') != 5 || error != std::errc() ||
        end != line.data() + first || step <= before) {
      malformed(run.log.string(),
                "expected a row of a log of a training after step {}, found the line {:?}", before,
                line.substr(0, 100));
    }
    before = step;
    const bool evaluated = step % run.evaluate_every == 0;
    if (step > last) {
      continue;
    }
    // Where training ended there is a row with a loss whatever the step; more can only come after
    // it was dropped.
    other = other || !is_due(step) || (!evaluated && third > second + 1);
    if (is_due(step)) {
      if (!evaluated) {
        line.erase(second + 1, third - second - 1);
      }
      rows += line + '\n';
      ++kept;
      begin = std::min(begin, step);
    }
  }
  require(!more && kept == due_until(last) - due_until(begin - 1),
          "run_training: log_every and evaluate_every must be those that {} was written with, got "
          "{} and {}",
          run.log.string(), run.log_every, run.evaluate_every);
  return rows;
}

}  // namespace

LanguageModelOutcome run_training(Trainer& trainer, std::span<const CharacterId> valid,
                                  const LanguageModelRun& run,
                                  const std::function<void(const TrainingStep&)>& progress) {
  require(run.log_every >= 1 && run.evaluate_every >= 1 && run.checkpoint_every >= 1,
          "run_training: log_every, evaluate_every and checkpoint_every must be at least 1, got "
          "{}, {} and {}",
          run.log_every, run.evaluate_every, run.checkpoint_every);
  std::string log(header);
  if (std::filesystem::exists(run.log)) {
    log += rows_up_to(trainer.steps(), run);
  }
  const std::vector<Example> examples = examples_of(valid, trainer.vocabulary(), trainer.options());
  const auto valid_loss = [&]() -> TextLoss {
    return examples.empty() ? TextLoss{}
                            : evaluate(trainer.model(), valid, examples, trainer.options().batch);
  };
  const auto save = [&] {
    write_file_atomically(run.log, log);
    trainer.write(run.checkpoint);
  };
  const Index steps = trainer.options().steps;
  LanguageModelOutcome outcome;
  if (trainer.steps() == 0) {  // a log alone would stand in the way of another try
    trainer.write(run.checkpoint);
    write_file_atomically(run.log, log);
  }
  while (trainer.steps() < steps) {
    const TrainingStep step = trainer.step();
    outcome.status = step.status;
    if (step.status != StepStatus::taken) {
      log += row_of(step, {});
      write_file_atomically(run.log, log);
      outcome.step = step.step - 1;
      return outcome;
    }
    const bool last = step.step == steps;
    const bool due = last || step.step % run.evaluate_every == 0;
    outcome.valid = due ? valid_loss() : TextLoss{};
    if (due || step.step % run.log_every == 0) {
      log += row_of(step, outcome.valid);
    }
    if (last || step.step % run.checkpoint_every == 0) {
      save();
    }
    if (progress) {
      progress(step);
    }
  }
  outcome.step = trainer.steps();
  if (outcome.valid.predicted == 0) {
    outcome.valid = valid_loss();
  }
  return outcome;
}

}  // namespace lipsa
