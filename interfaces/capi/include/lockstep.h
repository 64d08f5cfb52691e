/* Lockstep: AES on parallel hardware. The C interface, version 0.1.
 *
 * This file is written by cbindgen from interfaces/capi/src. The manual is docs/c.md.
 *
 * Results. Functions return LOCKSTEP_OK or a number LOCKSTEP_ERROR_, which never changes its meaning.
 * lockstep_strerror gives the text of a number. lockstep_last_error_message gives the message of the last
 * failure on this thread, with details.
 *
 * Pointers. A pointer to data may be NULL if its length is 0. Another pointer may be NULL only where this is
 * stated; otherwise the call returns LOCKSTEP_ERROR_NULL. Pointers must be aligned and valid for their length
 * during the call, and no other thread may write to the memory of a call, or read what the call writes. Input and
 * output of a call are the same pointer or separate memory; all other memory that a call writes is separate from
 * all memory that it uses. Otherwise the call returns LOCKSTEP_ERROR_OVERLAP.
 *
 * Objects. A function that makes an object stores its pointer, or NULL after an error. Each object is freed by
 * its own function, once. An object has copies of the keys, contexts and paths that it was made from, and keeps the
 * engine that it needs: these may be freed before the object. An object uses memory of the caller only in two
 * cases: the argument of the callback of a reader, and memory that was passed to lockstep_device_wrap.
 *
 * Callbacks may call functions of this library, also with the objects of the call. They must not free these
 * objects, must not leave by longjmp, and must not throw exceptions of C++: an exception ends the program.
 */


#ifndef LOCKSTEP_H
#define LOCKSTEP_H

#include <stddef.h>
#include <stdint.h>

// GCM (SP 800-38D). Keys of 16, 24 or 32 bytes, nonces of at least 1 byte (usually 12), tags of 4, 8 or 12 to 16 bytes.
#define LOCKSTEP_AEAD_GCM 1

// GCM-SIV (RFC 8452). Keys of 16 or 32 bytes, nonces of 12, tags of 16 bytes.
#define LOCKSTEP_AEAD_GCM_SIV 2

// OCB3 (RFC 7253). Keys of 16, 24 or 32 bytes, nonces of 1 to 15, tags of 1 to 16 bytes.
#define LOCKSTEP_AEAD_OCB 3

// SIV (RFC 5297). Keys of 32, 48 or 64 bytes, tags of 16 bytes. The nonce is optional and has any length.
#define LOCKSTEP_AEAD_SIV 4

// CCM (SP 800-38C). Keys of 16, 24 or 32 bytes, nonces of 7 to 13, tags of 4, 6, 8, 10, 12, 14 or 16 bytes.
#define LOCKSTEP_AEAD_CCM 5

// XAES-256-GCM (C2SP). Keys of 32 bytes, nonces of 24, tags of 16 bytes.
#define LOCKSTEP_AEAD_XAES_256_GCM 6

// EAX (Bellare, Rogaway and Wagner, 2004). Keys of 16, 24 or 32 bytes, nonces of any length, tags of 1 to 16 bytes.
#define LOCKSTEP_AEAD_EAX 7

// The message was not processed.
#define LOCKSTEP_STATUS_PENDING 0

// The message was processed; its tag was right.
#define LOCKSTEP_STATUS_DONE 1

// The tag was wrong. The output is zeroed.
#define LOCKSTEP_STATUS_AUTHENTICATION_FAILED 2

// CBC-CS1: the partial block comes before the last whole block.
#define LOCKSTEP_CTS_CS1 1

// CBC-CS2: the last two blocks are exchanged if the last one is partial.
#define LOCKSTEP_CTS_CS2 2

// CBC-CS3: the last two blocks are always exchanged (Kerberos 5).
#define LOCKSTEP_CTS_CS3 3

// ECB (SP 800-38A). Whole blocks of 16 bytes. No IV. It reveals equal blocks.
#define LOCKSTEP_CIPHER_ECB 1

// CBC (SP 800-38A). Whole blocks of 16 bytes, without padding.
#define LOCKSTEP_CIPHER_CBC 2

// PCBC of Kerberos 4. Whole blocks of 16 bytes.
#define LOCKSTEP_CIPHER_PCBC 3

// CFB with 128 bits (SP 800-38A). Any length.
#define LOCKSTEP_CIPHER_CFB 4

// CFB with 8 bits. Any length.
#define LOCKSTEP_CIPHER_CFB8 5

// CFB with 1 bit. Any number of bytes.
#define LOCKSTEP_CIPHER_CFB1 6

// OFB (SP 800-38A). Any length.
#define LOCKSTEP_CIPHER_OFB 7

// CTR (SP 800-38A) with a big-endian counter of 128 bits. Any length.
#define LOCKSTEP_CIPHER_CTR 8

// XTS (IEEE 1619). Data units of 16 bytes to 16 MiB. Keys of 32 or 64 bytes, whose halves differ. The IV is the tweak.
#define LOCKSTEP_CIPHER_XTS 9

// Plaintext to ciphertext.
#define LOCKSTEP_ENCRYPT 1

// Ciphertext to plaintext.
#define LOCKSTEP_DECRYPT 2

// The verification that LOCKSTEP_VERIFY in the environment sets; LOCKSTEP_VERIFY_SAMPLE if it is not set.
#define LOCKSTEP_VERIFY_DEFAULT 0

// No verification of the results of devices.
#define LOCKSTEP_VERIFY_OFF 1

// The CPU computes samples of the results of other devices again.
#define LOCKSTEP_VERIFY_SAMPLE 2

// The CPU computes all results of other devices again.
#define LOCKSTEP_VERIFY_FULL 3

// Success.
#define LOCKSTEP_OK 0

// The data are not authentic: wrong key, nonce, associated data or tag, or changed data. No plaintext is in the output.
#define LOCKSTEP_ERROR_AUTHENTICATION 1

// The message of the file format was encrypted with another key or another context.
#define LOCKSTEP_ERROR_WRONG_KEY 2

// The message of the file format was cut off.
#define LOCKSTEP_ERROR_TRUNCATED 3

// A pointer is null that must not be null.
#define LOCKSTEP_ERROR_NULL 4

// Memory that a call writes overlaps other memory of the call.
#define LOCKSTEP_ERROR_OVERLAP 5

// An argument or an option has a value that is not one of the defined values.
#define LOCKSTEP_ERROR_ARGUMENT 6

// The mode does not accept this key.
#define LOCKSTEP_ERROR_KEY 7

// The mode does not accept a nonce or an IV of this length.
#define LOCKSTEP_ERROR_NONCE 8

// The mode does not accept a tag of this length.
#define LOCKSTEP_ERROR_TAG 9

// The mode does not accept data of this length.
#define LOCKSTEP_ERROR_LENGTH 10

// More data than the mode or the format permits in one message.
#define LOCKSTEP_ERROR_TOO_LONG 11

// The output is too small.
#define LOCKSTEP_ERROR_OUTPUT 12

// The call is not permitted at this time or on this thread.
#define LOCKSTEP_ERROR_ORDER 13

// There is no device of this name.
#define LOCKSTEP_ERROR_UNKNOWN_DEVICE 14

// There is no kernel of this name, or the device cannot run it.
#define LOCKSTEP_ERROR_UNKNOWN_KERNEL 15

// The device or the kernel does not support the operation.
#define LOCKSTEP_ERROR_UNSUPPORTED 16

// The device cannot access the memory.
#define LOCKSTEP_ERROR_OUT_OF_REACH 17

// The device failed. All output of the call is invalid.
#define LOCKSTEP_ERROR_DEVICE 18

// The device returned a wrong result. All output of the call is invalid.
#define LOCKSTEP_ERROR_WRONG_RESULT 19

// A kernel failed its self-test and is not used.
#define LOCKSTEP_ERROR_SELF_TEST 20

// A device did not encrypt a message and reported no error. The output is invalid.
#define LOCKSTEP_ERROR_NOT_SEALED 21

// The input could not be read.
#define LOCKSTEP_ERROR_READ 22

// The output could not be written.
#define LOCKSTEP_ERROR_WRITE 23

// A file could not be opened or created.
#define LOCKSTEP_ERROR_FILE 24

// The output file exists, and overwriting was not requested.
#define LOCKSTEP_ERROR_EXISTS 25

// Input and output are the same file.
#define LOCKSTEP_ERROR_SAME_FILE 26

// The input file became longer or shorter during the call.
#define LOCKSTEP_ERROR_INPUT_CHANGED 27

// The progress callback cancelled the call.
#define LOCKSTEP_ERROR_CANCELLED 28

// The file is not a key file.
#define LOCKSTEP_ERROR_KEY_FILE 29

// The operating system returned no random bytes.
#define LOCKSTEP_ERROR_RANDOM 30

// The engine has opened devices in another process, before a fork.
#define LOCKSTEP_ERROR_FORKED 31

// A defect of this library.
#define LOCKSTEP_ERROR_INTERNAL 32

// An error that has no code of its own.
#define LOCKSTEP_ERROR_OTHER 33

// The file is not an intact Parquet file, or has something that is not supported.
#define LOCKSTEP_ERROR_PARQUET 34

// The Parquet file is not protected as the call requires: the file or a column is plain, or is already encrypted.
#define LOCKSTEP_ERROR_PROTECTION 35

// There is no key for a part of the file, or the key callback failed.
#define LOCKSTEP_ERROR_MISSING_KEY 36

// All modules are encrypted by GCM.
#define LOCKSTEP_PARQUET_AES_GCM_V1 0

// Pages are encrypted by CTR, and changes in them are not detected; all other modules are encrypted by GCM. Readers must
// permit this by `allow_unauthenticated_pages`.
#define LOCKSTEP_PARQUET_AES_GCM_CTR_V1 1

// The footer of a file.
#define LOCKSTEP_PARQUET_MODULE_FOOTER 0

// `ColumnMetaData` of a column chunk.
#define LOCKSTEP_PARQUET_MODULE_COLUMN_META_DATA 1

// A data page.
#define LOCKSTEP_PARQUET_MODULE_DATA_PAGE 2

// A dictionary page.
#define LOCKSTEP_PARQUET_MODULE_DICTIONARY_PAGE 3

// The header of a data page.
#define LOCKSTEP_PARQUET_MODULE_DATA_PAGE_HEADER 4

// The header of a dictionary page.
#define LOCKSTEP_PARQUET_MODULE_DICTIONARY_PAGE_HEADER 5

// `ColumnIndex` of a column chunk.
#define LOCKSTEP_PARQUET_MODULE_COLUMN_INDEX 6

// `OffsetIndex` of a column chunk.
#define LOCKSTEP_PARQUET_MODULE_OFFSET_INDEX 7

// The header of a Bloom filter.
#define LOCKSTEP_PARQUET_MODULE_BLOOM_FILTER_HEADER 8

// The bits of a Bloom filter.
#define LOCKSTEP_PARQUET_MODULE_BLOOM_FILTER_BITSET 9

// A key of a mode without authentication. It is wiped when it is freed. All threads may use it at the same time.
typedef struct lockstep_cipher_key lockstep_cipher_key;

// Started work of a device. Only the thread that has started the work may use this object.
typedef struct lockstep_completion lockstep_completion;

// Memory of a device. All threads may use it at the same time; the caller orders work on the same bytes.
typedef struct lockstep_device_buffer lockstep_device_buffer;

// The devices that do the work. A program needs one engine. All threads may use it at the same time.
typedef struct lockstep_engine lockstep_engine;

// A key of the file format. It is wiped when it is freed. All threads may use it at the same time.
typedef struct lockstep_file_key lockstep_file_key;

// A key of HCTR2. It is wiped when it is freed. All threads may use it at the same time.
typedef struct lockstep_hctr2_key lockstep_hctr2_key;

// A key of an authenticated mode. It is wiped when it is freed. All threads may use it at the same time.
typedef struct lockstep_key lockstep_key;

// An encrypted Parquet file in plain form. All threads may use it at the same time.
typedef struct lockstep_parquet_reader lockstep_parquet_reader;

// A message of the file format with random access. All threads may use it at the same time.
typedef struct lockstep_reader lockstep_reader;

// Bytes that are read.
typedef struct lockstep_bytes {
  // The bytes; NULL if there are none.
  const uint8_t *data;
  // The number of bytes.
  size_t len;
} lockstep_bytes;

// A message of a batch.
typedef struct lockstep_message {
  // The key. Messages may have the same key.
  const struct lockstep_key *key;
  // The nonce.
  const uint8_t *nonce;
  // Bytes of the nonce.
  size_t nonce_len;
  // Strings of associated data; NULL if there are none.
  const struct lockstep_bytes *aad;
  // The number of strings: at most one, except in SIV.
  size_t aad_count;
  // The data.
  const uint8_t *input;
  // The result, of the same length: the same memory as the input, or separate memory.
  uint8_t *output;
  // Bytes of the data.
  size_t len;
  // The tag: written by sealing, read by opening.
  uint8_t *tag;
  // Bytes of the tag.
  size_t tag_len;
  // The outcome, written by the call: one of the numbers LOCKSTEP_STATUS_. If the call fails with an error other than
  // LOCKSTEP_ERROR_AUTHENTICATION, the outcome of all messages is LOCKSTEP_STATUS_PENDING.
  int status;
} lockstep_message;

// A message of a batch.
typedef struct lockstep_cipher_message {
  // The key. Messages may have the same key.
  const struct lockstep_cipher_key *key;
  // The IV, counter or tweak, of 16 bytes: updated as by lockstep_cipher_encrypt. NULL in ECB.
  uint8_t *iv;
  // The data.
  const uint8_t *input;
  // The result, of the same length: the same memory as the input, or separate memory.
  uint8_t *output;
  // Bytes of the data.
  size_t len;
} lockstep_cipher_message;

// A part of a device buffer.
typedef struct lockstep_device_range {
  // The buffer.
  const struct lockstep_device_buffer *buffer;
  // The offset of the part in the buffer, in bytes.
  size_t offset;
  // Bytes of the part.
  size_t len;
} lockstep_device_range;

// Messages that arrays in memory of one device describe. Integers are 64-bit little-endian. Message i is read at
// `from + offsets[i]`, written at `to + offsets[i]`, and has `lengths[i]` bytes. The arrays must not overlap each other or the
// data; the messages must not overlap.
typedef struct lockstep_device_table {
  // sizeof(lockstep_device_table)
  size_t size;
  // The number of messages.
  size_t messages;
  // Bytes of each AES key: 16, 24 or 32.
  size_t key_len;
  // An upper bound of the lengths of messages in bytes. A longer message is refused.
  size_t longest;
  // Raw keys: one for each message, or a single key for all. In XTS the data key is followed by the tweak key.
  struct lockstep_device_range keys;
  // 16 bytes for each message: the IV of a mode without authentication, which is updated, or a nonce of 12 bytes and 4
  // bytes that are not used.
  struct lockstep_device_range states;
  // The offset of each message.
  struct lockstep_device_range offsets;
  // The length of each message.
  struct lockstep_device_range lengths;
  // The input.
  struct lockstep_device_range from;
  // The output: the same part as the input, or a separate part of the same length.
  struct lockstep_device_range to;
  // 16 bytes for each message: the tag, written or compared. Only for authenticated modes.
  struct lockstep_device_range tags;
  // One byte for each message, written by the device: a number LOCKSTEP_STATUS_. A message outside of the data, or of a
  // length that the mode does not accept, keeps LOCKSTEP_STATUS_PENDING.
  struct lockstep_device_range status;
} lockstep_device_table;

// Options of an engine. Zeros are the defaults.
typedef struct lockstep_engine_options {
  // sizeof(lockstep_engine_options)
  size_t size;
  // The device, such as "cpu" or "cuda:0". NULL: LOCKSTEP_DEVICE of the environment, or "auto", which chooses.
  const char *device;
  // The kernel, such as "cpu/vaes512". NULL: LOCKSTEP_KERNEL of the environment, or "auto".
  const char *kernel;
  // The number of CPU threads, at most 1024. 0: LOCKSTEP_THREADS of the environment, or one for each processor.
  uint32_t threads;
  // One of the numbers LOCKSTEP_VERIFY_.
  int verify;
} lockstep_engine_options;

// Receives the number of plaintext bytes so far. A result other than 0 cancels the call before the next piece of the input is
// processed; if there is no next piece, the call succeeds. The calls do not run at the same time, but they may run on any
// thread.
typedef int (*lockstep_progress_fn)(void *user, uint64_t bytes);

// Options of files. Zeros are the defaults.
typedef struct lockstep_file_options {
  // sizeof(lockstep_file_options)
  size_t size;
  // Progress and cancellation, or NULL.
  lockstep_progress_fn progress;
  // The first argument of the progress callback.
  void *progress_user;
  // The maximum number of threads for this call; 0: the number of the engine.
  uint32_t threads;
  // Not 0: replace the output if it exists.
  int force;
  // Not 0: the output is on stable storage when the call returns.
  int sync;
  // Not 0: write blocks of zeros to the disk. 0: blocks of 4096 zeros become holes, which take no space.
  int no_holes;
  // For lockstep_decrypt_file, not 0: keep the verified beginning of a damaged or truncated file. The call still fails, and
  // `plaintext_len` of the summary is the number of bytes that were kept, 0 if there is no output. The beginning of a file never
  // replaces an existing file.
  int partial;
  // Must be zero.
  uint32_t reserved;
} lockstep_file_options;

// The result of an encryption or decryption.
typedef struct lockstep_summary {
  // Bytes of plaintext.
  uint64_t plaintext_len;
  // Bytes of the encrypted message.
  uint64_t ciphertext_len;
} lockstep_summary;

// A message for CMAC.
typedef struct lockstep_mac_message {
  // The key, of any mode except XTS.
  const struct lockstep_cipher_key *key;
  // The data.
  const uint8_t *input;
  // Bytes of the data.
  size_t len;
  // The MAC, of 16 bytes, written by the call.
  uint8_t *mac;
} lockstep_mac_message;

// The key of a column.
typedef struct lockstep_parquet_column {
  // The path of the column: its names from the root, joined by dots. The name of a group stands for all columns in it.
  const char *path;
  // The key.
  const uint8_t *key;
  // Bytes of the key: 16, 24 or 32.
  size_t key_len;
  // Key metadata that the writer stores in the file, so that readers can find the key. Used only in a policy.
  const uint8_t *key_metadata;
  // Bytes of the key metadata; 0 if there are none.
  size_t key_metadata_len;
} lockstep_parquet_column;

// Finds a key of a Parquet file: the footer key if `column` is NULL, otherwise the key of the column with this path (its names
// from the root, joined by dots). `key_metadata` is what the file states about the key, in a form that its writer has chosen;
// NULL if the file states nothing. The callback writes the key to `key`, which has 32 bytes, and its length of 16, 24 or 32
// bytes to `key_len`. A length of 0 means that there is no key. A column without a key cannot be read. Without a footer key, a file
// can be read only with `allow_unauthenticated_footer`. Returns 0, or another number for an error. Calls run on the calling thread,
// one after the other.
typedef int (*lockstep_parquet_key_fn)(void *user,
                                       const char *column,
                                       const uint8_t *key_metadata,
                                       size_t key_metadata_len,
                                       uint8_t *key,
                                       size_t *key_len);

// Keys and options for reading. Either keys or `find_key` is required, except with `allow_unauthenticated_footer`.
typedef struct lockstep_parquet_read_options {
  // sizeof(lockstep_parquet_read_options)
  size_t size;
  // The footer key.
  const uint8_t *footer_key;
  // Bytes of the footer key: 16, 24 or 32.
  size_t footer_key_len;
  // The keys of columns. A file in which one of these columns is missing, or is not encrypted with a key of its own, is refused.
  const struct lockstep_parquet_column *columns;
  // The number of elements of `columns`.
  size_t column_count;
  // Finds keys, if none are given; otherwise NULL.
  lockstep_parquet_key_fn find_key;
  // The first argument of `find_key`.
  void *find_key_user;
  // The AAD prefix: required if the file was written with one, even if the file stores it. If the file stores a prefix, it must be
  // equal to this one.
  const uint8_t *aad_prefix;
  // Bytes of the AAD prefix; 0 if there is none.
  size_t aad_prefix_len;
  // Not 0: read files whose modules have no associated data, as DuckDB writes them. Pages of such a file can be exchanged
  // without notice.
  int allow_missing_aad;
  // Not 0: read files of LOCKSTEP_PARQUET_AES_GCM_CTR_V1, in whose pages changes are not detected. Nothing authenticates the
  // algorithm in a file with an encrypted footer. An attacker can therefore change the algorithm of such a file to
  // LOCKSTEP_PARQUET_AES_GCM_CTR_V1, even if its writer chose another one, and its pages are then not authenticated.
  int allow_unauthenticated_pages;
  // Not 0: read a file with a plaintext footer if there is no footer key. The signature of the footer is then not checked. Changes
  // of names, types, other metadata, and columns without a key are not detected, and neither are row groups that are missing or in
  // another order. Of a column of `columns`, the path, the physical type and the bytes of the pages are still authentic, and bound to
  // each other and to the file. The schema states how the bytes are decoded (repetition, length of a fixed-length type, logical
  // type), and it is not authenticated. So a change of the schema can change the values that are read. With `find_key` every column
  // may have been replaced by a plain one. If there is a footer key, the signature is always checked.
  int allow_unauthenticated_footer;
  // Must be zero.
  uint32_t reserved;
} lockstep_parquet_read_options;

// Fills a buffer with `len` bytes of the encrypted message or file from an offset. Returns 0, or another number for an error.
// Calls may run on any thread, and several calls at the same time.
typedef int (*lockstep_read_at_fn)(void *user, uint64_t offset, uint8_t *buffer, size_t len);

// The columns of a file that are encrypted, the keys, and the algorithm. Columns that are named neither in `columns` nor in
// `plain_columns` are encrypted with the footer key.
typedef struct lockstep_parquet_policy {
  // sizeof(lockstep_parquet_policy)
  size_t size;
  // The footer key.
  const uint8_t *footer_key;
  // Bytes of the footer key: 16, 24 or 32.
  size_t footer_key_len;
  // Key metadata that the writer stores in the file, so that readers can find the footer key.
  const uint8_t *footer_key_metadata;
  // Bytes of the key metadata; 0 if there are none.
  size_t footer_key_metadata_len;
  // The keys of columns.
  const struct lockstep_parquet_column *columns;
  // The number of elements of `columns`.
  size_t column_count;
  // The paths of columns that are not encrypted. The name of a group stands for all columns in it.
  const char *const *plain_columns;
  // The number of elements of `plain_columns`.
  size_t plain_column_count;
  // The AAD prefix, which identifies the file, so that it cannot be exchanged for another one.
  const uint8_t *aad_prefix;
  // Bytes of the AAD prefix; 0 if there is none.
  size_t aad_prefix_len;
  // LOCKSTEP_PARQUET_AES_GCM_V1 or LOCKSTEP_PARQUET_AES_GCM_CTR_V1.
  int algorithm;
  // Not 0: leave the footer readable, and sign it.
  int plaintext_footer;
  // Not 0: do not store the AAD prefix in the file. Readers must know it.
  int omit_aad_prefix;
  // Must be zero.
  uint32_t reserved;
} lockstep_parquet_policy;

// The protection of a module, and the place of the module in its file. They determine the mode and the associated data.
typedef struct lockstep_parquet_protection {
  // The key of the column, or the footer key: a key of LOCKSTEP_AEAD_GCM, also for CTR.
  const struct lockstep_key *key;
  // The AAD prefix that is expected, not one that the file states. NULL if the file was written without one.
  const uint8_t *aad_prefix;
  // Bytes of the AAD prefix; 0 if there is none.
  size_t aad_prefix_len;
  // The file's identifier (`aad_file_unique` in its metadata). If the identifier has another length, refuse the file.
  uint8_t aad_file_unique[8];
  // LOCKSTEP_PARQUET_AES_GCM_V1 or LOCKSTEP_PARQUET_AES_GCM_CTR_V1.
  int algorithm;
  // The type of the module: a number LOCKSTEP_PARQUET_MODULE_.
  int module;
  // The ordinal of the row group in the file, from 0 on. Zero for a footer.
  int16_t row_group;
  // The ordinal of the column in the row group, from 0 on. Zero for a footer.
  int16_t column;
  // The ordinal of the page in the column chunk, from 0 on, without the dictionary page. Zero unless the module is a data page or
  // the header of one.
  int16_t page;
  // Must be zero.
  int16_t reserved;
} lockstep_parquet_protection;

// A module in host memory. A module of GCM has a length of 4 bytes, a nonce of 12, ciphertext, and a tag of 16 bytes; a page
// of LOCKSTEP_PARQUET_AES_GCM_CTR_V1 has no tag.
typedef struct lockstep_parquet_module {
  // The protection of the module.
  struct lockstep_parquet_protection protection;
  // The module, from its length field on.
  const uint8_t *input;
  // Bytes of the module with its length field.
  size_t len;
  // The plaintext: separate memory, or `input + 16`, the place of the ciphertext.
  uint8_t *output;
  // Bytes of the plaintext: `len - 32`, or `len - 16` for a module without a tag.
  size_t output_len;
  // The outcome, written by the call: one of the numbers LOCKSTEP_STATUS_. LOCKSTEP_STATUS_AUTHENTICATION_FAILED: the tag or the
  // length field was wrong, and the output is zeroed.
  int status;
} lockstep_parquet_module;

// A module in memory of a device.
typedef struct lockstep_parquet_device_module {
  // The protection of the module. Its key is on the host.
  struct lockstep_parquet_protection protection;
  // The module, from its length field on.
  struct lockstep_device_range input;
  // The plaintext, of `input.len - 32` bytes, or `input.len - 16` for a module without a tag: separate memory of the device, or
  // the place of the ciphertext, 16 bytes after the start of the input.
  struct lockstep_device_range output;
  // The outcome, as in lockstep_parquet_module.
  int status;
} lockstep_parquet_device_module;

// Reads up to `len` bytes to `buffer`. Returns the number of bytes, 0 at the end, or a negative number for an error. The
// calls of one stream do not run at the same time, but they may run on any thread.
typedef ptrdiff_t (*lockstep_read_fn)(void *user, uint8_t *buffer, size_t len);

// Writes up to `len` bytes of `buffer`. Returns the number of bytes, which is at least 1, or a negative number for an error.
// The calls of one stream do not run at the same time, but they may run on any thread, and at the same time as a read.
typedef ptrdiff_t (*lockstep_write_fn)(void *user, const uint8_t *buffer, size_t len);

// Options of a stream. Zeros are the defaults.
typedef struct lockstep_stream_options {
  // sizeof(lockstep_stream_options)
  size_t size;
  // Progress and cancellation, or NULL.
  lockstep_progress_fn progress;
  // The first argument of the progress callback.
  void *progress_user;
  // The maximum number of threads for this call; 0: the number of the engine. With 1, all callbacks run on the calling
  // thread.
  uint32_t threads;
  // Must be zero.
  uint32_t reserved;
} lockstep_stream_options;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Returns the version of the library, such as "0.1.0".
const char *lockstep_version(void);

// Makes a key for an authenticated mode (a number LOCKSTEP_AEAD_) from its bytes, which are copied.
//
// Errors: LOCKSTEP_ERROR_ARGUMENT, LOCKSTEP_ERROR_KEY.
int lockstep_key_new(int aead, const uint8_t *bytes, size_t len, struct lockstep_key **key);

// Wipes and frees a key. No call may be using it. NULL is permitted.
void lockstep_key_free(struct lockstep_key *key);

// Encrypts and authenticates a message. `output` has `len` bytes and is `input` or separate memory. A nonce must never be
// used twice with one key. In SIV and GCM-SIV, a repeated nonce only reveals whether messages are equal. In SIV, `aad` is a
// single string, or no string if `aad_len` is 0; only a batch takes several strings.
//
// Errors: LOCKSTEP_ERROR_NONCE, LOCKSTEP_ERROR_TAG, LOCKSTEP_ERROR_TOO_LONG, LOCKSTEP_ERROR_OVERLAP; errors of devices.
int lockstep_aead_seal(const struct lockstep_engine *engine,
                       const struct lockstep_key *key,
                       const uint8_t *nonce,
                       size_t nonce_len,
                       const uint8_t *aad,
                       size_t aad_len,
                       const uint8_t *input,
                       size_t len,
                       uint8_t *output,
                       uint8_t *tag,
                       size_t tag_len);

// Checks and decrypts a message. `output` has `len` bytes and is `input` or separate memory. If the tag is wrong, the output
// is zeroed.
//
// Errors: LOCKSTEP_ERROR_AUTHENTICATION, and those of lockstep_aead_seal.
int lockstep_aead_open(const struct lockstep_engine *engine,
                       const struct lockstep_key *key,
                       const uint8_t *nonce,
                       size_t nonce_len,
                       const uint8_t *aad,
                       size_t aad_len,
                       const uint8_t *input,
                       size_t len,
                       const uint8_t *tag,
                       size_t tag_len,
                       uint8_t *output);

// Encrypts and authenticates the messages of a batch, whose keys are of one mode. A batch is much faster than single calls.
//
// Errors: those of lockstep_aead_seal; LOCKSTEP_ERROR_KEY for keys of several modes, LOCKSTEP_ERROR_ARGUMENT for
// several strings of associated data in a mode other than SIV. After an error, all outputs are invalid.
int lockstep_aead_seal_batch(const struct lockstep_engine *engine,
                             struct lockstep_message *messages,
                             size_t count);

// Checks and decrypts the messages of a batch, whose keys are of one mode. The output of each message with a wrong tag is
// zeroed; the other outputs are valid. `status` of each message has its outcome.
//
// Errors: LOCKSTEP_ERROR_AUTHENTICATION if any tag was wrong. After any other error, all outputs are invalid.
int lockstep_aead_open_batch(const struct lockstep_engine *engine,
                             struct lockstep_message *messages,
                             size_t count);

// Stores the length of the encrypted message for a plaintext of `len` bytes.
//
// Errors: LOCKSTEP_ERROR_TOO_LONG.
int lockstep_sealed_len(uint64_t len, uint64_t *sealed_len);

// Stores the length of the plaintext of an encrypted message of `sealed_len` bytes.
//
// Errors: LOCKSTEP_ERROR_TRUNCATED if no message has this length, LOCKSTEP_ERROR_TOO_LONG.
int lockstep_opened_len(uint64_t sealed_len, uint64_t *len);

// Encrypts a buffer in the file format (C2SP chunked encryption, "Cobblestone"). The salt is random, so the caller passes no
// nonce. The context is data about the message that both sides know; it may be empty. `room` is the size of the output, which
// needs lockstep_sealed_len bytes; the number of bytes written is stored. The output must not overlap the input. After an
// error each byte of the output is zeroed or unchanged.
//
// Errors: LOCKSTEP_ERROR_OUTPUT, LOCKSTEP_ERROR_OVERLAP, LOCKSTEP_ERROR_RANDOM, LOCKSTEP_ERROR_TOO_LONG; errors of devices.
int lockstep_seal(const struct lockstep_engine *engine,
                  const struct lockstep_file_key *key,
                  const uint8_t *context,
                  size_t context_len,
                  const uint8_t *input,
                  size_t len,
                  uint8_t *output,
                  size_t room,
                  size_t *output_len);

// Decrypts a message of the file format. `room` is the size of the output, which needs lockstep_opened_len bytes; the number
// of bytes written is stored. The output must not overlap the input. After an error the output has no plaintext: each byte is
// zeroed or unchanged.
//
// Errors: LOCKSTEP_ERROR_AUTHENTICATION, LOCKSTEP_ERROR_WRONG_KEY, LOCKSTEP_ERROR_TRUNCATED, LOCKSTEP_ERROR_OUTPUT,
// LOCKSTEP_ERROR_OVERLAP; errors of devices.
int lockstep_open(const struct lockstep_engine *engine,
                  const struct lockstep_file_key *key,
                  const uint8_t *context,
                  size_t context_len,
                  const uint8_t *input,
                  size_t len,
                  uint8_t *output,
                  size_t room,
                  size_t *output_len);

// Encrypts a message of at least 16 bytes by CBC with ciphertext stealing. `variant` is a number LOCKSTEP_CTS_. `iv` has 16
// bytes and is updated. `output` has `len` bytes and is `input` or separate memory. The key is of any mode except XTS.
//
// Errors: LOCKSTEP_ERROR_ARGUMENT, LOCKSTEP_ERROR_LENGTH, LOCKSTEP_ERROR_OVERLAP; LOCKSTEP_ERROR_KEY for a key of XTS;
// errors of devices.
int lockstep_cbc_cts_encrypt(const struct lockstep_engine *engine,
                             int variant,
                             const struct lockstep_cipher_key *key,
                             uint8_t *iv,
                             const uint8_t *input,
                             size_t len,
                             uint8_t *output);

// Decrypts a message. The arguments and errors are those of lockstep_cbc_cts_encrypt.
int lockstep_cbc_cts_decrypt(const struct lockstep_engine *engine,
                             int variant,
                             const struct lockstep_cipher_key *key,
                             uint8_t *iv,
                             const uint8_t *input,
                             size_t len,
                             uint8_t *output);

// Makes a key for a mode (a number LOCKSTEP_CIPHER_) from its bytes, which are copied: 16, 24 or 32 bytes, or 32 or 64 for
// XTS. A key that was made for any mode except XTS can be used in each of these modes, and for CMAC, key wrap, HCTR2 and CBC
// with ciphertext stealing.
//
// Errors: LOCKSTEP_ERROR_ARGUMENT, LOCKSTEP_ERROR_KEY.
int lockstep_cipher_key_new(int cipher,
                            const uint8_t *bytes,
                            size_t len,
                            struct lockstep_cipher_key **key);

// Wipes and frees a key. No call may be using it. NULL is permitted.
void lockstep_cipher_key_free(struct lockstep_cipher_key *key);

// Encrypts a message by a mode without authentication. If an attacker changes the ciphertext, the plaintext changes, and no
// call detects this. `iv` has 16 bytes (NULL in ECB) and is updated, so that the next call continues the message if this call
// ended at a block boundary; in XTS the tweak is not changed. `output` has `len` bytes and is `input` or separate memory.
//
// Errors: LOCKSTEP_ERROR_ARGUMENT, LOCKSTEP_ERROR_KEY, LOCKSTEP_ERROR_LENGTH, LOCKSTEP_ERROR_TOO_LONG,
// LOCKSTEP_ERROR_OVERLAP; errors of devices.
int lockstep_cipher_encrypt(const struct lockstep_engine *engine,
                            int cipher,
                            const struct lockstep_cipher_key *key,
                            uint8_t *iv,
                            const uint8_t *input,
                            size_t len,
                            uint8_t *output);

// Decrypts a message. The arguments and errors are those of lockstep_cipher_encrypt.
int lockstep_cipher_decrypt(const struct lockstep_engine *engine,
                            int cipher,
                            const struct lockstep_cipher_key *key,
                            uint8_t *iv,
                            const uint8_t *input,
                            size_t len,
                            uint8_t *output);

// Encrypts the messages of a batch. A batch is much faster than single calls.
//
// Errors: those of lockstep_cipher_encrypt. After an error, all outputs are invalid.
int lockstep_cipher_encrypt_batch(const struct lockstep_engine *engine,
                                  int cipher,
                                  const struct lockstep_cipher_message *messages,
                                  size_t count);

// Decrypts the messages of a batch. The errors are those of lockstep_cipher_encrypt_batch.
int lockstep_cipher_decrypt_batch(const struct lockstep_engine *engine,
                                  int cipher,
                                  const struct lockstep_cipher_message *messages,
                                  size_t count);

// Allocates memory of a device of the engine, and fills it with zeros. `device` is a name that lockstep_engine_device_name
// writes, or NULL for the first device with memory of its own. The memory is wiped when it is freed.
//
// Errors: LOCKSTEP_ERROR_UNKNOWN_DEVICE, LOCKSTEP_ERROR_OUT_OF_REACH if the device has no memory of its own,
// LOCKSTEP_ERROR_DEVICE if there is not enough memory.
int lockstep_device_allocate(const struct lockstep_engine *engine,
                             const char *device,
                             size_t len,
                             struct lockstep_device_buffer **buffer);

// Makes a buffer of `len` bytes of memory that the caller has allocated on a CUDA device of the engine, in the device's
// primary context: by cudaMalloc, or by a library such as PyTorch. The engine does not free it.
//
// The caller must guarantee two conditions that no library can check. The memory must stay allocated until all work on the
// buffer has ended and the buffer is freed. Until then, other writes to the memory, and reads of what the work writes, must
// be in the order of the stream of the work. A wrong pointer is undefined behaviour.
//
// Errors: LOCKSTEP_ERROR_UNKNOWN_DEVICE, LOCKSTEP_ERROR_OUT_OF_REACH if the memory of the device has no addresses.
int lockstep_device_wrap(const struct lockstep_engine *engine,
                         const char *device,
                         void *pointer,
                         size_t len,
                         struct lockstep_device_buffer **buffer);

// Frees a buffer. If lockstep_device_allocate has allocated its memory, the call waits for all work on the memory, wipes the
// memory and frees it. Memory that was passed to lockstep_device_wrap is neither wiped nor freed. No call may be using the
// buffer. NULL is permitted.
void lockstep_device_buffer_free(struct lockstep_device_buffer *buffer);

// Returns the length of a buffer in bytes; 0 if it is NULL.
size_t lockstep_device_buffer_len(const struct lockstep_device_buffer *buffer);

// Returns the address of a buffer on its device, for example for a kernel of CUDA; NULL if the memory of the device has no
// addresses. The host cannot read this address.
void *lockstep_device_buffer_pointer(const struct lockstep_device_buffer *buffer);

// Copies `len` bytes from the host to a buffer, at `offset`. The copy starts after earlier work on the stream, and the call
// waits for its end. The stream is a stream of the device (CUDA: a cudaStream_t or CUstream), or NULL for its default stream.
//
// Errors: LOCKSTEP_ERROR_OUTPUT if the part is outside of the buffer, LOCKSTEP_ERROR_DEVICE.
int lockstep_device_upload(const struct lockstep_device_buffer *buffer,
                           size_t offset,
                           const uint8_t *from,
                           size_t len,
                           void *stream);

// Copies `len` bytes of a buffer, at `offset`, to the host. The copy starts after earlier work on the stream, and the call
// waits for its end.
//
// Errors: those of lockstep_device_upload.
int lockstep_device_download(const struct lockstep_device_buffer *buffer,
                             size_t offset,
                             uint8_t *to,
                             size_t len,
                             void *stream);

// Starts an authenticated mode on the messages of a table, on a stream of the device (NULL: the default stream). The mode is
// LOCKSTEP_AEAD_GCM, LOCKSTEP_AEAD_GCM_SIV or LOCKSTEP_AEAD_OCB, as far as the device supports it; there are no associated
// data. The direction is LOCKSTEP_ENCRYPT or LOCKSTEP_DECRYPT. If `completion` is NULL, the call waits for the end.
//
// Errors: LOCKSTEP_ERROR_UNSUPPORTED, LOCKSTEP_ERROR_OUTPUT if an array is too short, LOCKSTEP_ERROR_OUT_OF_REACH; errors of
// devices. A wrong tag is not an error of the call: the status of its message shows it, and its output is zeroed.
int lockstep_device_table_aead(const struct lockstep_engine *engine,
                               int aead,
                               int direction,
                               const struct lockstep_device_table *table,
                               void *stream,
                               struct lockstep_completion **completion);

// Starts a mode without authentication on the messages of a table, on a stream of the device (NULL: the default stream). If
// `completion` is NULL, the call waits for the end. In XTS a message is a data unit of whole blocks.
//
// Errors: those of lockstep_device_table_aead.
int lockstep_device_table_cipher(const struct lockstep_engine *engine,
                                 int cipher,
                                 int direction,
                                 const struct lockstep_device_table *table,
                                 void *stream,
                                 struct lockstep_completion **completion);

// Returns 1 if lockstep_completion_wait would not block, otherwise 0. Returns 0 on a thread other than the one that started
// the work.
int lockstep_completion_is_ready(const struct lockstep_completion *completion);

// Waits for work, and frees its completion, even if the work has failed. On a thread other than the one that started the
// work, nothing happens, and the result is LOCKSTEP_ERROR_ORDER.
//
// Errors: LOCKSTEP_ERROR_DEVICE; LOCKSTEP_ERROR_ORDER.
int lockstep_completion_wait(struct lockstep_completion *completion);

// Runs a mode without authentication on memory of a device, on a stream of the device (NULL: the default stream), and waits.
// The direction is LOCKSTEP_ENCRYPT or LOCKSTEP_DECRYPT. `iv` has 16 bytes on the host (NULL in ECB) and is updated. `from`
// and `to` have the same length, belong to one device, and are the same range or do not overlap.
//
// Errors: LOCKSTEP_ERROR_OUTPUT, LOCKSTEP_ERROR_OUT_OF_REACH, LOCKSTEP_ERROR_UNSUPPORTED, and those of
// lockstep_cipher_encrypt. After LOCKSTEP_ERROR_WRONG_RESULT the output is zeroed.
int lockstep_device_cipher(const struct lockstep_engine *engine,
                           int cipher,
                           int direction,
                           const struct lockstep_cipher_key *key,
                           uint8_t *iv,
                           const struct lockstep_device_range *from,
                           const struct lockstep_device_range *to,
                           void *stream);

// Encrypts and authenticates a message in memory of a device, on a stream of the device (NULL: the default stream), and
// waits. Nonce, associated data and tag are on the host. `from` and `to` have the same length, belong to one device, and are
// the same range or do not overlap.
//
// Errors: LOCKSTEP_ERROR_OUTPUT, LOCKSTEP_ERROR_OUT_OF_REACH, LOCKSTEP_ERROR_UNSUPPORTED, and those of lockstep_aead_seal.
int lockstep_device_seal(const struct lockstep_engine *engine,
                         const struct lockstep_key *key,
                         const uint8_t *nonce,
                         size_t nonce_len,
                         const uint8_t *aad,
                         size_t aad_len,
                         const struct lockstep_device_range *from,
                         const struct lockstep_device_range *to,
                         uint8_t *tag,
                         size_t tag_len,
                         void *stream);

// Checks and decrypts a message in memory of a device. If the tag is wrong, the output is zeroed. The arguments are those of
// lockstep_device_seal.
//
// Errors: LOCKSTEP_ERROR_AUTHENTICATION, and those of lockstep_device_seal.
int lockstep_device_open(const struct lockstep_engine *engine,
                         const struct lockstep_key *key,
                         const uint8_t *nonce,
                         size_t nonce_len,
                         const uint8_t *aad,
                         size_t aad_len,
                         const struct lockstep_device_range *from,
                         const struct lockstep_device_range *to,
                         const uint8_t *tag,
                         size_t tag_len,
                         void *stream);

// Makes an engine. The options may be NULL. If the options name a device or a kernel, this call opens the drivers of its
// backend; otherwise drivers are opened when there is enough work for a device.
//
// Errors: LOCKSTEP_ERROR_ARGUMENT, LOCKSTEP_ERROR_UNKNOWN_DEVICE, LOCKSTEP_ERROR_UNKNOWN_KERNEL.
int lockstep_engine_new(const struct lockstep_engine_options *options,
                        struct lockstep_engine **engine);

// Frees an engine. No call may be using it. Objects that were made with the engine stay valid. NULL is permitted.
void lockstep_engine_free(struct lockstep_engine *engine);

// Stores the number of devices that the engine chooses from. The call discovers all devices, which opens the drivers of
// GPUs.
int lockstep_engine_device_count(const struct lockstep_engine *engine,
                                 size_t *count);

// Writes the name of a device, such as "cuda:0", with a null byte, to a buffer of `room` bytes. The index is below
// lockstep_engine_device_count. 64 bytes are enough for all names.
//
// Errors: LOCKSTEP_ERROR_UNKNOWN_DEVICE, LOCKSTEP_ERROR_OUTPUT.
int lockstep_engine_device_name(const struct lockstep_engine *engine,
                                size_t index,
                                char *name,
                                size_t room);

// Returns the text of an error code: what happened, and what to do. The text is constant. For a number that is no error
// code, the result is "unknown error code".
const char *lockstep_strerror(int code);

// Returns the message of the last call that failed on this thread, in English and UTF-8: what happened, and what to do. The
// message is empty if no call has failed. It contains no secrets. The pointer is valid until the next call that fails on
// this thread, or the end of the thread.
const char *lockstep_last_error_message(void);

// Encrypts a file to a file in the file format. The output appears complete or not at all. `options` and `summary` may be
// NULL.
//
// Errors: LOCKSTEP_ERROR_FILE, LOCKSTEP_ERROR_EXISTS, LOCKSTEP_ERROR_SAME_FILE, LOCKSTEP_ERROR_INPUT_CHANGED, and those of
// lockstep_encrypt_stream.
int lockstep_encrypt_file(const struct lockstep_engine *engine,
                          const struct lockstep_file_key *key,
                          const uint8_t *context,
                          size_t context_len,
                          const char *from,
                          const char *to,
                          const struct lockstep_file_options *options,
                          struct lockstep_summary *summary);

// Decrypts a file to a file. The output appears complete and verified or not at all. The arguments are those of
// lockstep_encrypt_file.
//
// Errors: LOCKSTEP_ERROR_AUTHENTICATION, LOCKSTEP_ERROR_WRONG_KEY, LOCKSTEP_ERROR_TRUNCATED, and those of
// lockstep_encrypt_file.
int lockstep_decrypt_file(const struct lockstep_engine *engine,
                          const struct lockstep_file_key *key,
                          const uint8_t *context,
                          size_t context_len,
                          const char *from,
                          const char *to,
                          const struct lockstep_file_options *options,
                          struct lockstep_summary *summary);

// Generates a key by the operating system's random generator. `bits` is 256 (Cobblestone-256) or 128 (Cobblestone-128).
//
// Errors: LOCKSTEP_ERROR_ARGUMENT, LOCKSTEP_ERROR_RANDOM.
int lockstep_file_key_generate(int bits,
                               struct lockstep_file_key **key);

// Makes a key from its 32 or 16 bytes, which must be uniformly random: not a password, and not the hash of one.
//
// Errors: LOCKSTEP_ERROR_KEY.
int lockstep_file_key_new(const uint8_t *bytes,
                          size_t len,
                          struct lockstep_file_key **key);

// Reads a key file, as `lockstep keygen` writes it.
//
// Errors: LOCKSTEP_ERROR_FILE, LOCKSTEP_ERROR_KEY_FILE.
int lockstep_file_key_read(const char *path, struct lockstep_file_key **key);

// Writes a key to a new key file that only its owner can read. An existing file is never overwritten.
//
// Errors: LOCKSTEP_ERROR_EXISTS, LOCKSTEP_ERROR_FILE.
int lockstep_file_key_write(const char *path, const struct lockstep_file_key *key);

// Copies the bytes of a key to `output` of `room` bytes, and stores their number: 32 or 16. Wipe the copy after its use.
//
// Errors: LOCKSTEP_ERROR_OUTPUT.
int lockstep_file_key_bytes(const struct lockstep_file_key *key,
                            uint8_t *output,
                            size_t room,
                            size_t *output_len);

// Wipes and frees a key. No call may be using it. NULL is permitted.
void lockstep_file_key_free(struct lockstep_file_key *key);

// Makes a key for HCTR2 from a key of any mode except XTS.
//
// Errors: LOCKSTEP_ERROR_KEY for a key of XTS; errors of devices.
int lockstep_hctr2_key_new(const struct lockstep_engine *engine,
                           const struct lockstep_cipher_key *key,
                           struct lockstep_hctr2_key **hctr2_key);

// Wipes and frees a key. No call may be using it. NULL is permitted.
void lockstep_hctr2_key_free(struct lockstep_hctr2_key *key);

// Encrypts a message of at least 16 bytes by HCTR2, without authentication. The tweak has any length. `output` has `len`
// bytes and is `input` or separate memory.
//
// Errors: LOCKSTEP_ERROR_LENGTH, LOCKSTEP_ERROR_OVERLAP; errors of devices.
int lockstep_hctr2_encrypt(const struct lockstep_engine *engine,
                           const struct lockstep_hctr2_key *key,
                           const uint8_t *tweak,
                           size_t tweak_len,
                           const uint8_t *input,
                           size_t len,
                           uint8_t *output);

// Decrypts a message. The arguments and errors are those of lockstep_hctr2_encrypt.
int lockstep_hctr2_decrypt(const struct lockstep_engine *engine,
                           const struct lockstep_hctr2_key *key,
                           const uint8_t *tweak,
                           size_t tweak_len,
                           const uint8_t *input,
                           size_t len,
                           uint8_t *output);

// Wraps a key whose length is a multiple of 8 bytes and at least 16 (KW, RFC 3394). The result has 8 bytes more. `room` is
// the size of the output; the number of bytes written is stored. The wrapping key is of any mode except XTS.
//
// Errors: LOCKSTEP_ERROR_LENGTH, LOCKSTEP_ERROR_OUTPUT, LOCKSTEP_ERROR_OVERLAP; LOCKSTEP_ERROR_KEY for a key of XTS; errors
// of devices.
int lockstep_key_wrap(const struct lockstep_engine *engine,
                      const struct lockstep_cipher_key *key,
                      const uint8_t *input,
                      size_t len,
                      uint8_t *output,
                      size_t room,
                      size_t *output_len);

// Unwraps a key (KW, RFC 3394). The result is 8 bytes shorter than the input.
//
// Errors: LOCKSTEP_ERROR_AUTHENTICATION, and those of lockstep_key_wrap.
int lockstep_key_unwrap(const struct lockstep_engine *engine,
                        const struct lockstep_cipher_key *key,
                        const uint8_t *input,
                        size_t len,
                        uint8_t *output,
                        size_t room,
                        size_t *output_len);

// Wraps a key of 1 to 2^32 - 1 bytes (KWP, RFC 5649). The length of the result is that of the key, rounded up to a multiple
// of 8, plus 8. The arguments and errors are those of lockstep_key_wrap.
int lockstep_key_wrap_padded(const struct lockstep_engine *engine,
                             const struct lockstep_cipher_key *key,
                             const uint8_t *input,
                             size_t len,
                             uint8_t *output,
                             size_t room,
                             size_t *output_len);

// Unwraps a key (KWP, RFC 5649). The output needs as many bytes as the unwrapped key has: at most 8 less than the input.
//
// Errors: LOCKSTEP_ERROR_AUTHENTICATION, and those of lockstep_key_wrap.
int lockstep_key_unwrap_padded(const struct lockstep_engine *engine,
                               const struct lockstep_cipher_key *key,
                               const uint8_t *input,
                               size_t len,
                               uint8_t *output,
                               size_t room,
                               size_t *output_len);

// Computes CMAC (SP 800-38B) of data: 16 bytes. The key is of any mode except XTS. Compare a MAC by lockstep_is_equal.
//
// Errors: LOCKSTEP_ERROR_KEY for a key of XTS; LOCKSTEP_ERROR_OVERLAP; LOCKSTEP_ERROR_UNSUPPORTED if the device that the engine
// names lacks CBC-MAC; errors of devices.
int lockstep_cmac(const struct lockstep_engine *engine,
                  const struct lockstep_cipher_key *key,
                  const uint8_t *input,
                  size_t len,
                  uint8_t *mac);

// Computes CMAC of the messages of a batch. A batch is much faster than single calls.
//
// Errors: those of lockstep_cmac.
int lockstep_cmac_batch(const struct lockstep_engine *engine,
                        const struct lockstep_mac_message *messages,
                        size_t count);

// Computes GMAC (SP 800-38D) of data under a key of LOCKSTEP_AEAD_GCM. A nonce must never be used twice with one key.
//
// Errors: LOCKSTEP_ERROR_NONCE, LOCKSTEP_ERROR_TAG, LOCKSTEP_ERROR_OVERLAP; LOCKSTEP_ERROR_KEY for a key of another mode;
// LOCKSTEP_ERROR_UNSUPPORTED if the device that the engine names lacks GHASH; errors of devices.
int lockstep_gmac(const struct lockstep_engine *engine,
                  const struct lockstep_key *key,
                  const uint8_t *nonce,
                  size_t nonce_len,
                  const uint8_t *input,
                  size_t len,
                  uint8_t *tag,
                  size_t tag_len);

// Compares secrets, such as MACs, in a time that does not depend on their content. Returns 1 if they are equal, otherwise 0.
// Returns 0 if a pointer is NULL and `len` is not 0.
int lockstep_is_equal(const uint8_t *a,
                      const uint8_t *b,
                      size_t len);

// Opens an encrypted Parquet file: checks its footer and finds the keys of its columns. The bytes of the reader are a plain
// Parquet file with the same table, which any reader of Parquet can read. Data are decrypted and checked when they are read.
//
// Errors: LOCKSTEP_ERROR_FILE, LOCKSTEP_ERROR_AUTHENTICATION, LOCKSTEP_ERROR_PARQUET, LOCKSTEP_ERROR_PROTECTION,
// LOCKSTEP_ERROR_MISSING_KEY, LOCKSTEP_ERROR_KEY, LOCKSTEP_ERROR_ARGUMENT, LOCKSTEP_ERROR_READ; errors of devices.
int lockstep_parquet_open_file(const struct lockstep_engine *engine,
                               const struct lockstep_parquet_read_options *options,
                               const char *path,
                               struct lockstep_parquet_reader **reader);

// Opens an encrypted Parquet file of `size` bytes, which a callback reads. The callback and its argument are used until the reader
// is freed.
//
// Errors: those of lockstep_parquet_open_file, except LOCKSTEP_ERROR_FILE.
int lockstep_parquet_open(const struct lockstep_engine *engine,
                          const struct lockstep_parquet_read_options *options,
                          lockstep_read_at_fn read_at,
                          void *user,
                          uint64_t size,
                          struct lockstep_parquet_reader **reader);

// Returns the length of the plain form in bytes; 0 if the reader is NULL.
uint64_t lockstep_parquet_len(const struct lockstep_parquet_reader *reader);

// Reads the plain form from an offset to a buffer until the buffer is full or the file ends, and stores the number of bytes. All
// modules that the range touches are checked. After an error the buffer is zeroed, or unchanged if nothing was read.
//
// Errors: LOCKSTEP_ERROR_AUTHENTICATION, LOCKSTEP_ERROR_PARQUET, LOCKSTEP_ERROR_READ; LOCKSTEP_ERROR_MISSING_KEY for a
// read that starts at a column without a key; errors of devices.
int lockstep_parquet_read(const struct lockstep_parquet_reader *reader,
                          uint64_t offset,
                          uint8_t *buffer,
                          size_t len,
                          size_t *read);

// Frees a reader of Parquet. No call may be using it. NULL is permitted.
void lockstep_parquet_free(struct lockstep_parquet_reader *reader);

// Writes the plain form of an encrypted Parquet file to a file, which only the owner can read. The output appears complete and
// verified or not at all. The output does not contain the plaintext of a column without a key. `output_options` may be NULL; of
// its members only `force` and `sync` are supported.
//
// Errors: LOCKSTEP_ERROR_EXISTS, LOCKSTEP_ERROR_SAME_FILE, LOCKSTEP_ERROR_WRITE, and those of lockstep_parquet_open_file.
int lockstep_parquet_decrypt_file(const struct lockstep_engine *engine,
                                  const struct lockstep_parquet_read_options *options,
                                  const char *from,
                                  const char *to,
                                  const struct lockstep_file_options *output_options);

// Encrypts a plain Parquet file to a file by a policy. Pages are not decompressed. The output appears complete or not at all.
// `output_options` may be NULL; of its members only `force` and `sync` are supported.
//
// Errors: LOCKSTEP_ERROR_ARGUMENT for a policy that names a column that the file does not have, or that contradicts itself;
// LOCKSTEP_ERROR_KEY, LOCKSTEP_ERROR_PARQUET; LOCKSTEP_ERROR_PROTECTION if the file is encrypted; LOCKSTEP_ERROR_FILE,
// LOCKSTEP_ERROR_EXISTS, LOCKSTEP_ERROR_SAME_FILE, LOCKSTEP_ERROR_READ, LOCKSTEP_ERROR_WRITE, LOCKSTEP_ERROR_RANDOM; errors of devices.
int lockstep_parquet_encrypt_file(const struct lockstep_engine *engine,
                                  const struct lockstep_parquet_policy *policy,
                                  const char *from,
                                  const char *to,
                                  const struct lockstep_file_options *output_options);

// Decrypts and checks modules in host memory, on all threads of the engine: the pages and page headers of column chunks, or any
// other modules. Each module may have its own key and belong to a different file. The output of each module that is not
// authentic is zeroed; the other outputs are valid. `status` of each module has its outcome. Pages of
// LOCKSTEP_PARQUET_AES_GCM_CTR_V1 have no tag, so changes in them are not detected.
//
// Errors: LOCKSTEP_ERROR_AUTHENTICATION if any module was not authentic. After any other error all outputs are invalid, and all
// statuses are LOCKSTEP_STATUS_PENDING: LOCKSTEP_ERROR_KEY, LOCKSTEP_ERROR_ARGUMENT, LOCKSTEP_ERROR_LENGTH for an input that
// is too short, LOCKSTEP_ERROR_OUTPUT for an output of another length, LOCKSTEP_ERROR_OVERLAP; errors of devices.
int lockstep_parquet_decrypt_modules(const struct lockstep_engine *engine,
                                     struct lockstep_parquet_module *modules,
                                     size_t count);

// Decrypts and checks modules in memory of one device, on a stream of the device (NULL: the default stream), and waits. The lengths,
// nonces and tags are copied to the host; everything else stays on the device.
//
// Errors: those of lockstep_parquet_decrypt_modules; LOCKSTEP_ERROR_OUT_OF_REACH for memory of several devices, or that overlaps
// in part.
int lockstep_parquet_device_decrypt_modules(const struct lockstep_engine *engine,
                                            struct lockstep_parquet_device_module *modules,
                                            size_t count,
                                            void *stream);

// Opens an encrypted file for random access: checks its header and its end. The file may be in use by other readers, but
// nothing may write to it.
//
// Errors: LOCKSTEP_ERROR_FILE, LOCKSTEP_ERROR_WRONG_KEY, LOCKSTEP_ERROR_TRUNCATED, LOCKSTEP_ERROR_AUTHENTICATION,
// LOCKSTEP_ERROR_READ; errors of devices.
int lockstep_reader_open_file(const struct lockstep_engine *engine,
                              const struct lockstep_file_key *key,
                              const uint8_t *context,
                              size_t context_len,
                              const char *path,
                              struct lockstep_reader **reader);

// Opens an encrypted message of `size` bytes, which a callback reads, for random access. The callback and its argument are
// used until the reader is freed.
//
// Errors: those of lockstep_reader_open_file, except LOCKSTEP_ERROR_FILE.
int lockstep_reader_open(const struct lockstep_engine *engine,
                         const struct lockstep_file_key *key,
                         const uint8_t *context,
                         size_t context_len,
                         lockstep_read_at_fn read_at,
                         void *user,
                         uint64_t size,
                         struct lockstep_reader **reader);

// Returns the length of the plaintext in bytes; 0 if the reader is NULL.
uint64_t lockstep_reader_len(const struct lockstep_reader *reader);

// Reads plaintext from an offset to a buffer until the buffer is full or the message ends, and stores the number of bytes.
// Each byte is verified. After an error the buffer is zeroed, or unchanged if nothing was read.
//
// Errors: LOCKSTEP_ERROR_AUTHENTICATION, LOCKSTEP_ERROR_READ; errors of devices.
int lockstep_reader_read(const struct lockstep_reader *reader,
                         uint64_t offset,
                         uint8_t *buffer,
                         size_t len,
                         size_t *read);

// Frees a reader. No call may be using it. NULL is permitted.
void lockstep_reader_free(struct lockstep_reader *reader);

// Encrypts a stream in the file format, in bounded memory and on all threads of the engine. `options` and `summary` may be
// NULL. After an error the bytes that were written are not a complete message.
//
// Errors: LOCKSTEP_ERROR_READ or LOCKSTEP_ERROR_WRITE if a callback failed, LOCKSTEP_ERROR_CANCELLED, LOCKSTEP_ERROR_RANDOM,
// LOCKSTEP_ERROR_TOO_LONG; errors of devices.
int lockstep_encrypt_stream(const struct lockstep_engine *engine,
                            const struct lockstep_file_key *key,
                            const uint8_t *context,
                            size_t context_len,
                            lockstep_read_fn read,
                            void *read_user,
                            lockstep_write_fn write,
                            void *write_user,
                            const struct lockstep_stream_options *options,
                            struct lockstep_summary *summary);

// Decrypts a stream of the file format. Bytes that are written are verified, but after an error they are only a part of the
// plaintext: discard them. The arguments are those of lockstep_encrypt_stream.
//
// Errors: LOCKSTEP_ERROR_AUTHENTICATION, LOCKSTEP_ERROR_WRONG_KEY, LOCKSTEP_ERROR_TRUNCATED, and those of
// lockstep_encrypt_stream.
int lockstep_decrypt_stream(const struct lockstep_engine *engine,
                            const struct lockstep_file_key *key,
                            const uint8_t *context,
                            size_t context_len,
                            lockstep_read_fn read,
                            void *read_user,
                            lockstep_write_fn write,
                            void *write_user,
                            const struct lockstep_stream_options *options,
                            struct lockstep_summary *summary);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* LOCKSTEP_H */
