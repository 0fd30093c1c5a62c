// A place that holds tensors and runs ops: a set of CPU cores, an OpenCL device, a CUDA GPU. One
// thread drives a device (but see run_parts); calls run in order and may return before the work is
// done. ops/ has checked every shape, dtype and placement beforehand, so backends only assert.
//
// All activations are float32. x, y and the like are [rows, cols], row-major, rows `stride` apart.
#ifndef QUINTET_BACKENDS_DEVICE_H_
#define QUINTET_BACKENDS_DEVICE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "core/host_view.h"
#include "core/logit_edit.h"
#include "core/micro_batch.h"
#include "core/step_batch.h"
#include "core/tensor.h"

namespace quintet {

struct MemoryInfo {
  size_t total = 0;  // bytes the device has (a CPU device: this process's limit on its node)
  size_t free = 0;   // bytes that can still be had
  size_t used = 0;   // bytes held by tensors and weights of this Device object
  size_t peak = 0;   // the most that `used` has been since the device was opened
};

// A matrix of weights [d_out, d_in], packed as its device likes it.
class Weight {
 public:
  virtual ~Weight() = default;
  virtual int64_t d_out() const = 0;  // columns of y; with a gate, half of the rows packed
  virtual int64_t d_in() const = 0;
  virtual bool gated() const = 0;
  virtual DType dtype() const = 0;  // as stored: float32, bfloat16 or float16
  virtual size_t bytes() const = 0;
  virtual const void* owner() const { return nullptr; }  // its Device; null: not told, not checked
};

struct PackOptions {
  DType dtype = DType::kFloat32;
  bool gated =
      false;  // two parts of one shape, wi_0 and wi_1: y = activation(x wi_0^T) * (x wi_1^T)
  // The parts lie in the file as [d_in, d_out] (GPT-2's Conv1D); of each, columns
  // [first_column, first_column + n_columns) are packed, all behind the first where n_columns is 0.
  bool transposed = false;
  int64_t first_column = 0;
  int64_t n_columns = 0;
};

enum class Activation {
  kNone,
  kRelu,
  kGeluTanh,  // 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))): "gelu_new"
  kGeluErf,   // 0.5 x (1 + erf(x / sqrt(2))): "gelu"
  kSilu,      // x / (1 + exp(-x)): "silu", "swish"
  kTanh,
  kGeluQuick,  // x / (1 + exp(-1.702 x)): "quick_gelu"
};

// What a linear does to its sums before they are stored: activation(scale * sum + bias), times the
// gate where the weight has one; then y = that, or y += that.
struct Epilogue {
  Activation activation = Activation::kNone;
  bool accumulate = false;  // y += ..., the residual
  float scale = 1.0F;
  Tensor bias = {};  // [1, d_out] float32; empty: none. Not with a gate.
};

struct AttentionArgs {
  int64_t n_heads = 0;
  int64_t d_kv = 0;     // of one head
  float scale = 1.0F;   // of q k^T; T5: 1
  bool causal = false;  // a row sees keys at positions <= its own
};

enum class Pooling { kMean, kFirst, kLast };

struct KvShape {
  int64_t n_heads = 0;
  int64_t d_kv = 0;  // of one head

  // Of keys and values in float32, as every device lays them out.
  int64_t bytes_per_page() const {
    return 2 * kPageTokens * n_heads * d_kv * static_cast<int64_t>(sizeof(float));
  }
};

// Keys and values of one block for many sequences, in pages of kPageTokens tokens, laid out as its
// device likes it.
class KvCache {
 public:
  virtual ~KvCache() = default;
  virtual KvShape shape() const = 0;
  virtual int64_t n_pages() const = 0;
  virtual size_t bytes() const = 0;
  virtual const void* owner() const { return nullptr; }  // its Device; null: not told, not checked
};

class Device {
 public:
  virtual ~Device() = default;
  virtual std::string name() const = 0;   // as the user writes it: "cpu[0-7]", "opencl:1"
  virtual MemoryInfo memory() const = 0;  // read anew at each call
  // Whether its tensors lie in memory that the host addresses and its ops take tensors of every
  // other device of which this is true. Such tensors pass between stages as pointers, so the last
  // to drop one may be another thread than the device's own.
  virtual bool host_memory() const { return false; }
  virtual void wait() = 0;  // until all earlier calls are done; throws what they threw

  // An asynchronous device (a command queue) returns from its ops before they are done, and moves
  // data beside them: upload() into a tensor fresh from allocate() does not wait for earlier ops.
  // Whoever drives it gives it the next micro-batch while one is under way. Tensors may be dropped
  // while calls that use them are under way, here as everywhere.
  virtual bool asynchronous() const { return false; }
  virtual uint64_t mark() { return 0; }  // stands for all calls so far
  // Until the calls before `mark` are done, whatever was called since; throws what they threw.
  virtual void wait_for(uint64_t /*mark*/) { wait(); }
  // download() of what src holds once the calls before `mark` are done, beside calls made since,
  // of which none may write to src.
  virtual void download_at(uint64_t mark, const Tensor& src, void* host) {
    wait_for(mark);
    download(src, host);
  }

  virtual void empty_cache() = 0;               // gives memory kept for reuse back to the system
  virtual void manual_seed(uint64_t seed) = 0;  // of what the device draws

  // Called once, on the thread that will drive the device, before its first op: a CPU device pins
  // the thread to its first core.
  virtual void attach_thread() {}

  // Lending: the driving thread has nothing to do until stop() and offers itself meanwhile. It runs
  // work of other devices of its kind, sleeps while there is none, asks stop() first, after each
  // piece of work and after each wake(), and returns true once stop() is true. A wake() that falls
  // between the asking and the sleeping is not lost. Never throws. False at once where there is
  // nothing to lend: the caller then waits in its own way.
  virtual bool lend_until(const std::function<bool()>& /*stop*/) { return false; }
  virtual void wake() {}  // any thread; makes a thread that is in lend_until() ask stop() again

  // Parts of a batch that are worked on side by side: part(i) for i in [0, n), each calling ops on
  // tensors that no other part writes, from threads of the device's choosing; all are done on
  // return, and the first thing a part threw is thrown. A device wants as many parts as
  // parts_wanted(); fewer do no harm: who has no part helps with the ops of the others.
  virtual int64_t parts_wanted() const { return 1; }
  virtual void run_parts(int64_t n, const std::function<void(int64_t)>& part) {
    for (int64_t i = 0; i < n; ++i) part(i);
  }

  // Contents are undefined. The stride may exceed cols where that is faster. Throws Error(kMemory).
  virtual Tensor allocate(int64_t rows, int64_t cols, DType dtype = DType::kFloat32) = 0;
  // Host rows lie `cols` elements apart, in the tensor's dtype; both calls are done on return.
  virtual void upload(const void* host, const Tensor& dst) = 0;
  virtual void download(const Tensor& src, void* host) = 0;

  // Packs the rows of `parts`, one below the other, [sum of rows, d_in]. The file's pages are given
  // back while packing: at most a few MiB of them are resident at a time.
  virtual std::unique_ptr<Weight> pack(std::span<const HostView> parts, PackOptions options) = 0;

  // y[i] = table[ids[i]]; table: [vocab_size, d_model] in any floating dtype, ids checked.
  // With `accumulate` y[i] += that. A float32 table may also be a tensor of activations.
  virtual void embedding(std::span<const int32_t> ids, const Tensor& table, const Tensor& y,
                         bool accumulate = false) = 0;
  // The same from a packed matrix, one without a gate: y[i] = row ids[i] of w, [n, d_in]. A model
  // whose head is its embedding keeps one copy of it.
  virtual void weight_rows(std::span<const int32_t> ids, const Weight& w, const Tensor& y) = 0;

  // y[i] = weight * x[i] / sqrt(mean(x[i]^2) + eps); weight: [1, cols] float32. y may be x.
  virtual void rms_norm(const Tensor& x, const Tensor& weight, float eps, const Tensor& y) = 0;

  // y[i] = weight * (x[i] - mean(x[i])) / sqrt(variance(x[i]) + eps) + bias; weight, bias: [1,
  // cols] float32; the variance is the mean of squared distances from the mean. y may be x.
  virtual void layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, float eps,
                          const Tensor& y) = 0;

  // y[n, d_out] = epilogue(x[n, d_in] * w[d_out, d_in]^T), summed in float32.
  virtual void linear(const Tensor& x, const Weight& w, const Epilogue& epilogue,
                      const Tensor& y) = 0;

  // Softmax attention of rows [first_row, first_row + q.rows) of the packed batch over the keys of
  // their own sequences, streamed in key blocks.
  //   q, y: [rows, n_heads * d_kv]; k, v: [n_tokens, n_heads * d_kv]; y must not overlap q, k, v
  //   position_bias: [n_heads, 2 * m - 1] for any m >= batch.max_len, or empty: none; added to the
  //   scaled score of (row, key) is element [head, key position - row position + m - 1].
  virtual void attention(const Tensor& q, const Tensor& k, const Tensor& v,
                         const Tensor& position_bias, const MicroBatch& batch, int64_t first_row,
                         const AttentionArgs& args, const Tensor& y) = 0;

  // Decoding with caches. Every row is one query of its own sequence.
  virtual std::unique_ptr<KvCache> make_kv_cache(const KvShape& shape, int64_t n_pages) = 0;
  virtual void kv_copy(std::span<const PageCopy> copies, KvCache& cache) = 0;  // in their order
  // Keeps row i of k and v, [n, n_heads * d_kv], in slots[i]; -1: nowhere. The others differ.
  virtual void kv_write(const Tensor& k, const Tensor& v, std::span<const int32_t> slots,
                        KvCache& cache) = 0;
  // Row i of q attends to the first n_keys[i] keys of its table: the bits are those of attention()
  // with causal over the same keys at positions 0, 1, ...  q, y: [n_rows, n_heads * d_kv]; y may be
  // q. position_bias as in attention(), the row's own position being n_keys[i] - 1; args.causal
  // does not count.
  virtual void cached_attention(const Tensor& q, const KvCache& cache, const PageTable& pages,
                                const Tensor& position_bias, const AttentionArgs& args,
                                const Tensor& y) = 0;

  // Choosing tokens. Logits: [n, vocab_size] float32.
  // x[i] -= log(sum(exp(x[i]))), the sum in 16 virtual lanes.
  virtual void log_softmax(const Tensor& x) = 0;
  virtual void edit(std::span<const LogitEdit> edits, const Tensor& x) = 0;  // in their order
  // The k largest of each row, largest first, of equal ones the lower index first; NaN counts as
  // the smallest. ids, values: [n * k] on the host, ready on return. k <= cols.
  virtual void top_k(const Tensor& x, int64_t k, std::span<int32_t> ids,
                     std::span<float> values) = 0;
  // values[i] = x[rows[i]][columns[i]], on the host, ready on return.
  virtual void pick(const Tensor& x, std::span<const int32_t> rows,
                    std::span<const int32_t> columns, std::span<float> values) = 0;

  // y[s] = pooled rows [begin[s], end[s]) of x, the rows added in order; a range without rows gives
  // zeros. With `normalize`, y[s] is then divided by its Euclidean norm (zeros stay zeros).
  virtual void pool(const Tensor& x, std::span<const int32_t> begin, std::span<const int32_t> end,
                    Pooling pooling, bool normalize, const Tensor& y) = 0;
};

}  // namespace quintet

#endif  // QUINTET_BACKENDS_DEVICE_H_
