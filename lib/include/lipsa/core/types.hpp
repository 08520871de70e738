/// \file
/// The matrix and vector types of the library. Everything is IEEE binary64.
#pragma once

#include <Eigen/Core>

namespace lipsa {

using Index = Eigen::Index;
using Vector = Eigen::VectorXd;

/// Row-major, so that vec(X) of a token matrix X (n × D, one token a row) is its storage:
/// vec(X) = (x_1; x_2; …; x_n). Files of numpy have the same order.
using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

using ConstVectorRef = Eigen::Ref<const Vector>;
using VectorRef = Eigen::Ref<Vector>;
using ConstMatrixRef = Eigen::Ref<const Matrix>;
using MatrixRef = Eigen::Ref<Matrix>;

}  // namespace lipsa
