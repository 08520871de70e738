/// \file
/// Real numbers as balls of any precision: owners for the values of FLINT's Arb. Private to lib/.
#pragma once

#include <arb.h>

#include <string>

#include "core/rounding.hpp"
#include "lipsa/core/types.hpp"

namespace lipsa {

/// To be called on a thread before it computes with FLINT, which keeps caches for each thread:
/// they are given back when the thread ends.
void use_flint_on_this_thread();

/// One ball.
class Real {
 public:
  Real() { arb_init(x_); }
  explicit Real(double exact) : Real() { arb_set_d(x_, exact); }
  Real(const Real& other) : Real() { arb_set(x_, other.x_); }
  Real(Real&& other) noexcept : Real() { arb_swap(x_, other.x_); }
  Real& operator=(const Real& other) {
    arb_set(x_, other.x_);
    return *this;
  }
  Real& operator=(Real&& other) noexcept {
    arb_swap(x_, other.x_);
    return *this;
  }
  ~Real() { arb_clear(x_); }

  // As the functions of Arb take it.
  operator arb_ptr() { return x_; }           // NOLINT(google-explicit-constructor)
  operator arb_srcptr() const { return x_; }  // NOLINT(google-explicit-constructor)

  double lower() const;  ///< the largest double at or below the ball; -inf when nothing is known
  double upper() const;  ///< the smallest at or above; inf when nothing is known

  /// Bounds of the ball in at most 17 decimal digits; "0" for a lower bound below zero.
  std::string lower_text() const;
  std::string upper_text() const;

 private:
  arb_t x_{};
};

/// A matrix of balls, row by row.
class Reals {
 public:
  Reals(Index rows, Index cols) : rows_(rows), cols_(cols), x_(_arb_vec_init(rows * cols)) {}
  explicit Reals(const ConstMatrixRef& exact);
  Reals(const Reals&) = delete;
  Reals& operator=(const Reals&) = delete;
  Reals(Reals&& other) noexcept : rows_(other.rows_), cols_(other.cols_), x_(other.x_) {
    other.rows_ = 0;
    other.cols_ = 0;
    other.x_ = nullptr;
  }
  Reals& operator=(Reals&&) = delete;
  ~Reals() {
    if (x_ != nullptr) {
      _arb_vec_clear(x_, rows_ * cols_);
    }
  }

  Index rows() const { return rows_; }
  Index cols() const { return cols_; }
  arb_ptr operator()(Index i, Index j) { return x_ + i * cols_ + j; }
  arb_srcptr operator()(Index i, Index j) const { return x_ + i * cols_ + j; }

 private:
  Index rows_;
  Index cols_;
  arb_ptr x_;
};

/// A B, at some bits of precision.
Reals product(const Reals& a, const Reals& b, Index bits);

/// A Bᵀ.
Reals product_transposed(const Reals& a, const Reals& b, Index bits);

Reals transposed(const Reals& a);

/// Every entry times c.
void scale_by(Reals& a, const Real& c, Index bits);

}  // namespace lipsa
