"""Families of operators, by name."""

from __future__ import annotations

import fnmatch

OTHER = "pointwise and special"

# The first family with a pattern that fits; names are without namespace, overload and underscores in front.
_FAMILIES = {
    "complex and fft": "*fft* stft istft *complex* real imag angle conj* resolve_* polar chalf cfloat cdouble view_as_real",
    "quantized": "*quantize* *fake_quant* int_repr* q_* *dequant*",
    "random and creation": """
        rand* normal* bernoulli* *dropout* full* ones* zeros* new_* eye arange linspace logspace *window* empty*
        tri?_indices vander scalar_tensor lift_fresh* kaiser* cauchy* exponential* geometric* uniform* log_normal*
        multinomial""",
    "norm, attention, rnn, loss, embedding": """
        *loss* *norm_except_dim* *_norm native_*norm* *batch_norm* *layer_norm* *attention* lstm* gru* rnn* embedding*
        *entropy* *kl_div* cosine_similarity pairwise_distance pdist *ctc* renorm normalize one_hot linalg_norm
        linalg_vector_norm""",
    "conv, pool, pad, resize": """
        conv* *convolution* *pool* *pad *pad?d* upsample* *interpolate* grid_* affine_grid* im2col col2im pixel_*
        channel_shuffle *unfold* fold* slow_conv* thnn_* mkldnn*""",
    "indexing, scatter, sort": """
        index* scatter* gather* take* masked_* unsafe_masked_index* put* sort* argsort* topk* kthvalue* unique* nonzero*
        searchsorted* bucketize* histc* histogram* bincount* msort select* slice* where* *_scatter segment_*
        repeat_interleave* argwhere unravel_index cummax cummin mode* median* nanmedian* *quantile*""",
    "linalg and matmul": """
        linalg* *mm mm *mv matmul dot vdot inner outer einsum kron cross cholesky* qr svd* lu* triangular_solve inverse
        pinverse det logdet slogdet eig* geqrf orgqr ormqr lstsq trace addr cdist* matrix_* tensordot chain_matmul
        householder* *bilinear linear cov corrcoef ger cumulative_trapezoid trapz trapezoid block_diag multi_dot""",
    "reduction": """
        sum* mean* prod* std* var* max* amax* min* amin* aminmax* all* any* argm* logsumexp* nansum* nanmean*
        count_nonzero* norm* cum* logcum* dist reduce* softmax* log_softmax* sum_to_size""",
    "shape": """
        view* reshape* expand* permute* transpose* t squeeze* unsqueeze* flatten* unflatten* cat* stack* *stack *split*
        chunk* roll* rot90* flip* tile* repeat* diag* tri? as_strided* move* meshgrid* cartesian* combinations*
        broadcast* narrow* unbind* swap* size* *_copy alias* contiguous* unsafe_* T mT mH H numpy_T adjoint ravel
        resize* atleast* unfold* to type_as clone*""",
}
_PATTERNS = {label: text.split() for label, text in _FAMILIES.items()}


def family(operator: str) -> str:
    """Returns the family of an ATen operator (``"aten::add.Tensor"``) or of an entry in ``op_db`` (``"linalg.norm"``)."""
    if "::" in operator:
        name = operator.partition("::")[2].partition(".")[0]
    else:
        name = operator.partition("/")[0]
        name = name.replace(".", "_") if name.startswith(("linalg.", "fft.")) else name.rpartition(".")[2]
    name = name.lstrip("_") or name
    for label, patterns in _PATTERNS.items():
        if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns):
            return label
    return OTHER
