// Choosing tokens: log-softmax, edits, the k best of each row, single numbers.

// --- log-softmax. A row's sum is that of its chunks of CHUNK columns, each summed in sixteen lanes:
// part[0][row][chunk] are the chunks' largest numbers, part[1][row][chunk] their sums.

KERNEL largest_of_chunks(MATRIX(x), int rows, int cols, int chunks, GLOBAL float* part) {
  LANE_SCRATCH;
  const int item = (int)GLOBAL_ID(1);
  const int at = min(item, rows * chunks - 1);
  const int begin = at % chunks * CHUNK;
  const int n = min(CHUNK, cols - begin);
  GLOBAL const float* from = ROW_OF(x, at / chunks) + begin;
  const float least = -FLOAT_OF_BITS(0x7F800000U);
  lanes16 most = (lanes16)(least);
  for (int i = 0; i < n; i += 16) most = fmax(most, load_lanes(from, i, n, least));
  const float largest = MAX_ACROSS(most);
  if (item < rows * chunks) part[item] = largest;
}

DEVICE_FUNCTION float largest_of(GLOBAL const float* values, int n) {
  float largest = values[0];
  for (int i = 1; i < n; ++i) largest = fmax(largest, values[i]);
  return largest;
}

KERNEL sums_of_chunks(MATRIX(x), int rows, int cols, int chunks, GLOBAL float* part) {
  LANE_SCRATCH;
  const int item = (int)GLOBAL_ID(1);
  const int at = min(item, rows * chunks - 1);
  const int row = at / chunks;
  const int begin = at % chunks * CHUNK;
  const int n = min(CHUNK, cols - begin);
  GLOBAL const float* from = ROW_OF(x, row) + begin;
  const float largest = largest_of(part + (long)row * chunks, chunks);
  lanes16 sums = (lanes16)(0.0F);
  for (int i = 0; i < n; i += 16) {
    const lanes16 v = load_lanes(from, i, n, -FLOAT_OF_BITS(0x7F800000U));
    sums = sums + exp_of_lanes(v - largest);
  }
  const float sum = SUM_ACROSS(sums);
  if (item < rows * chunks) part[(long)rows * chunks + item] = sum;
}

KERNEL subtract_log_sums(MATRIX(x), int rows, int cols, int chunks, GLOBAL const float* part) {
  const int item = (int)GLOBAL_ID(1);
  if (item >= rows * chunks) return;
  const int row = item / chunks;
  const int begin = item % chunks * CHUNK;
  const int n = min(CHUNK, cols - begin);
  GLOBAL float* values = ROW_OF(x, row) + begin;
  const float largest = largest_of(part + (long)row * chunks, chunks);
  float sum = 0.0F;
  for (int chunk = 0; chunk < chunks; ++chunk) {
    sum = sum + part[((long)rows + row) * chunks + chunk];
  }
  const float log = log_of(sum);
  for (int i = 0; i < n; i += 16) {
    store_lanes(load_lanes(values, i, n, 0.0F) - largest - log, values, i, n);
  }
}

// --- edits. A group has one row, of which each work-item has every LOCAL_SIZE-th column and goes
// through all of the row's edits in their order. An edit is four words, LogitEdit's; those of the
// group's row are [begin[group], begin[group + 1]).

KERNEL edit(GLOBAL const int* begin, GLOBAL const int* edits, MATRIX(x), int cols) {
  const int from = begin[GROUP_ID(0)];
  const int to = begin[GROUP_ID(0) + 1];
  GLOBAL float* row = ROW_OF(x, edits[4 * from + 1]);
  for (int i = from; i < to; ++i) {
    const int kind = edits[4 * i];
    const int token = edits[4 * i + 2];
    const float value = FLOAT_OF_BITS(edits[4 * i + 3]);
    if (kind == EDIT_FILL_ROW) {
      for (int column = LOCAL_ID(0); column < cols; column += LOCAL_SIZE(0)) row[column] = value;
    } else if (token % LOCAL_SIZE(0) == LOCAL_ID(0)) {
      const float before = row[token];
      row[token] = kind == EDIT_SET ? value : before < 0.0F ? before * value : before / value;
    }
  }
}

// --- single numbers

KERNEL pick(MATRIX(x), GLOBAL const int* rows, GLOBAL const int* columns, int n,
            GLOBAL float* values) {
  const int i = (int)GLOBAL_ID(0);
  if (i < n) values[i] = ROW_OF(x, rows[i])[columns[i]];
}

// --- the k best. What is chosen are pairs of words, the column and the number's bits, in any order;
// the host sorts them.

// Rises with x; equal for equal numbers, 0 for NaN.
#define DEFINE_RISING_KEY(N, T, B, FLOATS, BITS)                                              \
  DEVICE_FUNCTION B rising_key##N(T x) {                                                      \
    const B bits = BITS(x);                                                                   \
    const B size = bits & (B)(0x7FFFFFFFU);                                                   \
    const B positive = size | (B)(0x80000000U);                                               \
    const B key = size == (B)(0U) ? positive : (bits == size ? positive : ~bits);             \
    return size > (B)(0x7F800000U) ? (B)(0U) : key;                                           \
  }

#if defined(LANES_IN_VECTOR)

DEFINE_RISING_KEY(, float, bits32, FLOAT_OF_BITS, BITS_OF_FLOAT)
DEFINE_RISING_KEY(16, float16, uint16, as_float16, as_uint16)

// A work-item has one part of `length` columns of a row and keeps its min(k, length) best in order,
// as [rank][column, key] while it looks for better ones.
KERNEL best_of_parts(MATRIX(x), int rows, int cols, int parts, int length, int k,
                     GLOBAL uint* chosen) {
  const int item = (int)GLOBAL_ID(0);
  if (item >= rows * parts) return;
  const int begin = item % parts * length;
  const int end = min(begin + length, cols);
  GLOBAL const float* row = ROW_OF(x, item / parts);
  GLOBAL uint* best = chosen + 2L * item * k;
  int count = 0;
  for (int i = begin; i < end; i += 16) {
    const uint16 keys = rising_key16(load_lanes(row, i, end, 0.0F));
    if (count == k && !any(keys > (uint16)(best[2 * k - 1]))) continue;
    for (int column = i; column < min(i + 16, end); ++column) {
      const uint key = rising_key(row[column]);
      if (count == k && key <= best[2 * k - 1]) continue;
      if (count < k) ++count;
      int at = count - 1;
      for (; at > 0 && key > best[2 * at - 1]; --at) {
        best[2 * at] = best[2 * at - 2];
        best[2 * at + 1] = best[2 * at - 1];
      }
      best[2 * at] = (uint)column;
      best[2 * at + 1] = key;
    }
  }
  for (int at = 0; at < count; ++at) best[2 * at + 1] = as_uint(row[best[2 * at]]);
}

#elif defined(ROWS_PER_GROUP)

DEFINE_RISING_KEY(, float, bits32, FLOAT_OF_BITS, BITS_OF_FLOAT)

// What a column is chosen by, larger being better: its number, and of equal numbers its index.
#define WORD(column) (by_index ? ~(bits32)(column) : rising_key(row[column]))

// The work of a group is a row. A word's digits are found from the highest down, by counting how
// many of the columns that share the digits found so far have which next one, until it is known
// which is the last word that is chosen; where not all of its columns are, their indices are looked
// at in the same way.
KERNEL select_best(MATRIX(x), int cols, int k, GLOBAL bits32* chosen) {
  LOCAL bits32 counts[256];
  LOCAL bits32 last_word;
  LOCAL bits32 missing;  // of those with the digits of last_word, as many are chosen
  LOCAL bits32 ties;     // ... and so many there are
  LOCAL bits32 n_chosen;
  GLOBAL const float* row = ROW_OF(x, GROUP_ID(0));
  bits32 last_key = 0;
  bits32 last_index = 0;  // as a word
  if (LOCAL_ID(0) == 0) {
    missing = (bits32)k;
    n_chosen = 0;
  }
  for (int by_index = 0; by_index < 2; ++by_index) {
    bits32 found = 0;  // the digits found so far
    for (int shift = 24; shift >= 0; shift -= 8) {
      for (int i = LOCAL_ID(0); i < 256; i += LOCAL_SIZE(0)) counts[i] = 0;
      BARRIER();
      const bits32 prefix = found == 0 ? 0 : last_word & found;
      bits32 digit = 0;
      bits32 run = 0;  // of equal digits, counted at once
      for (int column = LOCAL_ID(0); column < cols; column += LOCAL_SIZE(0)) {
        if (by_index && rising_key(row[column]) != last_key) continue;
        const bits32 word = WORD(column);
        if ((word & found) != prefix) continue;
        const bits32 next = word >> shift & 255U;
        if (next != digit) {
          if (run != 0) ADD_ATOMICALLY(&counts[digit], run);
          run = 0;
        }
        digit = next;
        ++run;
      }
      if (run != 0) ADD_ATOMICALLY(&counts[digit], run);
      BARRIER();
      if (LOCAL_ID(0) == 0) {
        int last = 255;
        for (; counts[last] < missing; --last) missing -= counts[last];
        last_word = prefix | (bits32)last << shift;
        ties = counts[last];
      }
      BARRIER();
      found |= 255U << shift;
    }
    if (by_index) {
      last_index = last_word;
    } else {
      last_key = last_word;
      if (ties == missing) break;
    }
    BARRIER();  // last_word has been read
  }
  GLOBAL bits32* out = chosen + 2L * GROUP_ID(0) * k;
  for (int column = LOCAL_ID(0); column < cols; column += LOCAL_SIZE(0)) {
    const bits32 key = rising_key(row[column]);
    if (key < last_key || (key == last_key && ~(bits32)column < last_index)) continue;
    const bits32 at = ADD_ATOMICALLY(&n_chosen, 1U);
    out[2 * at] = (bits32)column;
    out[2 * at + 1] = BITS_OF_FLOAT(row[column]);
  }
}

#endif
