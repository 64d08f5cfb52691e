//! Digests of the correct answers to the tests in `selftest`. A test of the planner fails if the digests must be updated.

use crate::work::Operation;

/// The digests of the outputs of the first tests, for each key size.
pub(super) const FIRST_TESTS: [u64; 3] =
    [0xef7b_dec8_5ed0_c4c7, 0x232d_b5f8_20b0_5443, 0x0347_ea14_9171_9892];

/// The digests of the outputs of each operation, for each key size.
pub(super) const DIGESTS: [[u64; 3]; Operation::COUNT] = [
    // EcbEncrypt
    [0x88c7_ff93_d7ee_100a, 0x4d74_ec2c_caf8_038e, 0xa67d_da7a_5529_0b45],
    // EcbDecrypt
    [0x2884_229f_5682_9f44, 0xf4a8_fa86_d0f0_024b, 0x7aca_d85a_4b0a_456d],
    // Ctr
    [0x6a98_d744_80bf_56c2, 0x2854_012b_9409_06ab, 0xa06d_d6ed_b570_97b2],
    // Ctr32
    [0x3e9e_c833_abc8_35ab, 0xb8c3_1545_b3e8_8fd3, 0xfa0e_d3ca_febe_b15c],
    // CtrLittle32
    [0x171f_3e80_bf53_4147, 0x224d_e592_0f16_81a0, 0x0fdb_510e_478b_1445],
    // CbcEncrypt
    [0x5409_0069_e79f_8f65, 0xa159_93ea_a24b_ca69, 0x7baa_466f_fd4c_9e34],
    // CbcDecrypt
    [0x88e6_0558_4c8a_2fdd, 0xec80_f662_3a75_bb65, 0x66ae_fbaa_5cb4_1bfb],
    // Cfb128Encrypt
    [0xd266_95a9_34f4_16e9, 0xd872_3270_4ca0_c00b, 0xfd7f_06b8_e992_0fde],
    // Cfb128Decrypt
    [0xd156_608c_681c_a4ca, 0x749a_dad6_b95f_4e0d, 0x95d9_f8bc_a488_e709],
    // Cfb8Encrypt
    [0x5a02_8865_89a5_acf7, 0x2fe4_e4e9_9dbb_79b5, 0x103c_9d2a_4912_26b4],
    // Cfb8Decrypt
    [0xf2ae_f59f_bd64_752e, 0x997c_8cd8_296e_f028, 0xde30_1a37_d528_f3db],
    // Cfb1Encrypt
    [0xc6d8_9b40_c33a_e5b5, 0x9c1a_ce4f_f407_1304, 0xcf6b_5fdd_d3d3_d720],
    // Cfb1Decrypt
    [0x5294_d14a_3c49_df8e, 0x6b1a_cbc9_127c_317c, 0x9ef5_d1ea_f715_b242],
    // Ofb
    [0xb890_1ad2_fba9_3e2a, 0x0dae_39ce_42a2_1e92, 0xc2c8_c195_5e87_2326],
    // PcbcEncrypt
    [0xe46f_818f_4335_3491, 0xc066_5c83_4812_6bfe, 0x8e4f_52d5_cf0e_c928],
    // PcbcDecrypt
    [0xa624_60fe_ed20_a237, 0xc427_768a_e715_95e1, 0xfdd5_9c78_4a2f_6fe7],
    // CbcMac
    [0x475f_88d8_493b_0058, 0x85b7_b96a_5e6d_1bbf, 0x0700_8ea9_f555_0ebc],
    // XtsEncrypt
    [0x39d9_e79f_d659_c39f, 0x4fe1_afd6_9ccf_d4f8, 0x3231_4441_7140_0983],
    // XtsDecrypt
    [0x90e5_4d98_d7b2_ce50, 0xc05b_3ff5_9602_d844, 0x6dc2_eb4c_25ab_195d],
    // Ghash
    [0x7132_76c3_24b7_401b, 0x5e23_13fb_42d4_3a00, 0x5152_6ca8_4191_1aea],
    // Polyval, with keys of 16 bytes only
    [0xe517_c843_ef33_ffa3, 0, 0],
    // GcmSeal
    [0xcab7_c146_450c_36e8, 0x880b_4b25_b035_8f4e, 0x3379_66c3_0238_28ee],
    // GcmOpen
    [0x0443_b2fd_dbaa_2a77, 0x2aac_c75f_427b_c625, 0x5aae_7807_d225_6ce5],
    // OcbSeal
    [0x3e3f_4b00_0512_6875, 0x716e_6a86_3656_0a34, 0x66db_5f18_b515_1e29],
    // OcbOpen
    [0x55cb_f73e_adb8_15bf, 0x460f_3935_9854_3e71, 0x0a65_f4c9_7144_e87e],
    // GcmSivSeal
    [0x613a_065a_f23b_d856, 0x3cdf_6cc4_4f79_b0ce, 0x88c6_077a_a9df_fda3],
    // GcmSivOpen
    [0x9e92_6d3f_5e85_fae3, 0x60f5_a2a0_466e_3e1a, 0x6a42_753d_ab9e_7ac8],
];
