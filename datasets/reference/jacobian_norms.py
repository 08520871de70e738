"""Norms of attention Jacobians by complex-step differentiation: writes jacobian_norms.csv.

Shares nothing with the library: the layer is written from its definition, differentiated by
F(X + i h E) / h with h = 1e-30, which is exact to rounding, and the norms are numpy's.

    python3 datasets/reference/jacobian_norms.py > datasets/reference/jacobian_norms.csv
"""
import numpy as np

CASES = [  # n, D, H, d, d_v, D_out, size of the weights
    (1, 3, 2, 2, 4, 3, 1.0),
    (4, 3, 1, 3, 3, 3, 1.0),
    (6, 4, 2, 3, 2, 5, 1.5),
    (9, 2, 3, 1, 2, 2, 3.0),
]
EPSILON = 0.05  # of cosine
SCORE_BIAS = -0.7  # of sigmoid


def made_up(rows, cols, stream):
    """Entry (i, j) is sin(1 + stream + 7 (i cols + j)), over the root of the rows."""
    k = np.arange(rows * cols).reshape(rows, cols)
    return np.sin(1.0 + stream + 7.0 * k) / np.sqrt(rows)


def normalised(Z):
    """Rows over their length; the sum of squares is of z, not |z|, to be analytic."""
    return Z / np.sqrt((Z * Z).sum(axis=1, keepdims=True) + EPSILON)


def layer(X, kind, mask, H, d, d_v, W_Q, W_K, W_V, W_O, b_Q, b_K, b_V, b_O):
    heads = []
    for h in range(H):
        q_cols, v_cols = slice(h * d, (h + 1) * d), slice(h * d_v, (h + 1) * d_v)
        Q = X @ W_Q[:, q_cols] + b_Q[q_cols]
        K = Q if kind == "l2" else X @ W_K[:, q_cols] + b_K[q_cols]
        values = W_V[:, v_cols]
        if kind == "l2":
            values = W_Q[:, q_cols] @ W_Q[:, q_cols].T / np.sqrt(d) @ values
        V = X @ values + b_V[v_cols]
        if kind == "cosine":
            Q, K, V = normalised(Q), normalised(K), normalised(V)
        if kind in ("l2", "l2-untied"):
            S = -((Q[:, None, :] - K[None, :, :]) ** 2).sum(axis=2)
        else:
            S = Q @ K.T
        if kind == "sigmoid":
            P = mask / (1.0 + np.exp(-S / np.sqrt(d) - SCORE_BIAS))
        else:
            E = np.exp(S / np.sqrt(d)) * mask
            P = E / E.sum(axis=1, keepdims=True)
        heads.append(P @ V)
    return np.concatenate(heads, axis=1) @ W_O + b_O


def jacobian(f, X):
    h = 1e-30
    columns = []
    for k in range(X.size):
        step = np.zeros(X.size, dtype=complex)
        step[k] = 1j * h
        columns.append(f(X + step.reshape(X.shape)).imag.ravel() / h)
    return np.array(columns).T


print("n,D,H,d,d_v,D_out,size,attention,mask,norm_1,norm_2,norm_inf,norm_frobenius")
for n, D, H, d, d_v, D_out, size in CASES:
    X = size * made_up(n, D, 0.1)
    weights = [size * made_up(D, H * d, 0.2), size * made_up(D, H * d, 0.3),
               made_up(D, H * d_v, 0.4), made_up(H * d_v, D_out, 0.5),
               made_up(1, H * d, 0.6)[0], made_up(1, H * d, 0.7)[0],
               made_up(1, H * d_v, 0.8)[0], made_up(1, D_out, 0.9)[0]]
    for kind in ("dot", "l2", "l2-untied", "cosine", "sigmoid"):
        for name, mask in (("none", np.ones((n, n))), ("causal", np.tril(np.ones((n, n))))):
            J = jacobian(lambda x: layer(x, kind, mask, H, d, d_v, *weights), X)
            norms = [np.linalg.norm(J, p) for p in (1, 2, np.inf, "fro")]
            print(",".join(map(str, (n, D, H, d, d_v, D_out, size, kind, name))),
                  *(f"{x:.17g}" for x in norms), sep=",")
