// Decrypts the pages of an encrypted column chunk in the memory of a GPU, in place.
#include <cstdint>
#include <vector>
#include <lockstep.h>

// `chunk` is the encrypted column chunk on the host, and `memory` its copy on the device. `place` has the key, the AAD prefix, the
// identifier of the file, the algorithm, the row group and the column. After the call, the output and the status of each module are set.
// The modules are a page header, its page, the next header, and so on. A page is at `output.offset` of `memory`. Returns LOCKSTEP_OK if
// all of them are authentic.
inline int decrypt_pages(const lockstep_engine *engine, lockstep_parquet_protection place, bool has_dictionary,
                         const std::vector<std::uint8_t> &chunk, const lockstep_device_buffer *memory, void *cuda_stream,
                         std::vector<lockstep_parquet_device_module> &modules)
{
    for (std::size_t at = 0, number = 0; at + 4 <= chunk.size(); number++) {
        const std::size_t len = 4 + (chunk[at] | chunk[at + 1] << 8 | chunk[at + 2] << 16 | std::size_t(chunk[at + 3]) << 24);
        const bool is_dictionary = has_dictionary && number < 2, is_header = number % 2 == 0;
        const int page = is_dictionary ? LOCKSTEP_PARQUET_MODULE_DICTIONARY_PAGE : LOCKSTEP_PARQUET_MODULE_DATA_PAGE;
        // The numbers of headers follow those of pages: DATA_PAGE_HEADER is DATA_PAGE + 2.
        place.module = is_header ? page + 2 : page;
        place.page = is_dictionary ? 0 : std::int16_t(number / 2 - (has_dictionary ? 1 : 0));
        const bool has_tag = is_header || place.algorithm == LOCKSTEP_PARQUET_AES_GCM_V1;
        const std::size_t overhead = has_tag ? 32 : 16;
        if (len < overhead || len > chunk.size() - at)
            return LOCKSTEP_ERROR_PARQUET;
        modules.push_back({place, {memory, at, len}, {memory, at + 16, len - overhead}, 0});
        at += len;
    }
    return lockstep_parquet_device_decrypt_modules(engine, modules.data(), modules.size(), cuda_stream);
}
