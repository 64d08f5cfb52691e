// Runs the example of docs/data.md, which decrypts the pages of a column chunk, on the device in the first argument. The program itself
// encrypts the chunk, with GCM. If the device does not exist, it prints NOT TESTED.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include "../../examples/c/parquet_pages.hh"

static void check(bool condition, int line)
{
    if (!condition) {
        std::fprintf(stderr, "pages.cc:%d: the last error is: %s\n", line, lockstep_last_error_message());
        std::exit(1);
    }
}
#define CHECK(condition) check(condition, __LINE__)
#define OK(call) CHECK((call) == LOCKSTEP_OK)

#ifdef LOCKSTEP_LAB
extern "C" void lockstep_lab_register(void);
#endif

int main(int argc, char **argv)
{
#ifdef LOCKSTEP_LAB
    lockstep_lab_register();
#endif
    const std::uint8_t bytes[16] = {1, 2, 3};
    // The module type and the ordinals of each module. Row group 3, column 1 has a dictionary page and two data pages.
    const std::vector<std::vector<std::uint8_t>> places = {{5, 3, 0, 1, 0}, {3, 3, 0, 1, 0}, {4, 3, 0, 1, 0, 0, 0},
                                                           {2, 3, 0, 1, 0, 0, 0}, {4, 3, 0, 1, 0, 1, 0}, {2, 3, 0, 1, 0, 1, 0}};
    lockstep_engine_options options = {sizeof options, argc > 1 ? argv[1] : nullptr, nullptr, 2, LOCKSTEP_VERIFY_SAMPLE};
    lockstep_engine *engine = nullptr;
    if (lockstep_engine_new(&options, &engine) == LOCKSTEP_ERROR_UNKNOWN_DEVICE) {
        std::printf("NOT TESTED: %s\n", lockstep_last_error_message());
        return 0;
    }
    lockstep_key *key = nullptr;
    OK(lockstep_key_new(LOCKSTEP_AEAD_GCM, bytes, 16, &key));
    std::vector<std::uint8_t> chunk;
    for (std::uint8_t i = 0; i < places.size(); i++) {
        std::vector<std::uint8_t> aad = {'f', 'i', 'l', 'e', 1, 2, 3, 4, 5, 6, 7, 8}, module(4 + 12 + 100 + i + 16, std::uint8_t(i + 1));
        const std::size_t len = 100u + i;
        aad.insert(aad.end(), places[i].begin(), places[i].end());
        module[0] = std::uint8_t(module.size() - 4), module[1] = module[2] = module[3] = 0;
        OK(lockstep_aead_seal(engine, key, &module[4], 12, aad.data(), aad.size(), &module[16], len, &module[16], &module[16 + len], 16));
        chunk.insert(chunk.end(), module.begin(), module.end());
    }
    lockstep_device_buffer *memory = nullptr;
    OK(lockstep_device_allocate(engine, nullptr, chunk.size(), &memory));
    lockstep_parquet_protection place = {key, reinterpret_cast<const std::uint8_t *>("file"), 4, {1, 2, 3, 4, 5, 6, 7, 8},
                                         LOCKSTEP_PARQUET_AES_GCM_V1, 0, 3, 1, 0, 0};
    for (bool is_damaged : {false, true}) {
        std::vector<lockstep_parquet_device_module> modules;
        std::vector<std::uint8_t> plain(chunk.size());
        chunk[chunk.size() - 1] ^= is_damaged;
        OK(lockstep_device_upload(memory, 0, chunk.data(), chunk.size(), nullptr));
        const int code = decrypt_pages(engine, place, true, chunk, memory, nullptr, modules);
        CHECK(code == (is_damaged ? LOCKSTEP_ERROR_AUTHENTICATION : LOCKSTEP_OK) && modules.size() == places.size());
        OK(lockstep_device_download(memory, 0, plain.data(), plain.size(), nullptr));
        for (std::uint8_t i = 0; i < places.size(); i++) {
            const bool is_bad = is_damaged && i + 1u == places.size();
            CHECK(modules[i].status == (is_bad ? LOCKSTEP_STATUS_AUTHENTICATION_FAILED : LOCKSTEP_STATUS_DONE));
            for (std::size_t at = 0; at < modules[i].output.len; at++)
                CHECK(plain[modules[i].output.offset + at] == (is_bad ? 0 : i + 1));
        }
    }
    lockstep_device_buffer_free(memory);
    lockstep_key_free(key);
    lockstep_engine_free(engine);
    std::puts("passed");
}
