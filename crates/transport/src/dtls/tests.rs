//! Known answers of the algorithms, each with its source.

use muster_protocol::dtls::{Aead, Cipher, Crypto, Group};

use super::{AwsLc, GroupSecret};

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let pairs = digits.chunks(2).map(|pair| {
        let pair = std::str::from_utf8(pair).expect("ASCII");
        u8::from_str_radix(pair, 16).expect("hexadecimal")
    });
    pairs.collect()
}

fn bytes<const N: usize>(text: &str) -> [u8; N] {
    hex(text).try_into().expect("of this length")
}

/// Checks that sealing gives the answer, and that the answer opens; with any byte altered it does
/// not.
fn check(cipher: Cipher, [key, nonce, associated, plain, answer]: [&str; 5]) {
    let (nonce, associated, plain, answer) =
        (bytes(nonce), hex(associated), hex(plain), hex(answer));
    let key = AwsLc::new().aead(cipher, &bytes(key));
    let mut sealed = plain.clone();
    sealed.resize(plain.len() + key.tag_len(), 0);
    key.seal(&nonce, &associated, &mut sealed);
    assert_eq!(sealed, answer, "{cipher:?}");
    for at in 0..sealed.len() {
        let mut altered = sealed.clone();
        altered[at] ^= 1;
        assert!(!key.open(&nonce, &associated, &mut altered), "byte {at}");
    }
    assert!(!key.open(&nonce, b"other", &mut sealed.clone()));
    assert!(!key.open(&nonce, &associated, &mut []));
    assert!(key.open(&nonce, &associated, &mut sealed));
    assert_eq!(&sealed[..plain.len()], plain);
}

const CCM: [&str; 4] = [
    "404142434445464748494a4b4c4d4e4f",
    "101112131415161718191a1b",
    "000102030405060708090a0b0c0d0e0f10111213",
    "202122232425262728292a2b2c2d2e2f3031323334353637",
];

#[test]
fn aes_ccm_8_is_that_of_nist_sp_800_38c_example_3() {
    let [key, nonce, associated, plain] = CCM;
    let answer = "e3b201a9f5b71a7a9b1ceaeccd97e70b6176aad9a4428aa5 484392fbc1b09951";
    check(Cipher::Aes128Ccm8, [key, nonce, associated, plain, answer]);
}

/// The same with a tag of 16 bytes, for which the publication has no example: OpenSSL 3's answer.
#[test]
fn aes_ccm_is_that_of_openssl() {
    let [key, nonce, associated, plain] = CCM;
    let answer = "e3b201a9f5b71a7a9b1ceaeccd97e70b6176aad9a4428aa5c87ae488918de93f17dd3e4934347f44";
    check(Cipher::Aes128Ccm, [key, nonce, associated, plain, answer]);
}

#[test]
fn aes_gcm_is_that_of_test_case_4_of_its_specification() {
    let case = [
        "feffe9928665731c6d6a8f9467308308",
        "cafebabefacedbaddecaf888",
        "feedfacedeadbeeffeedfacedeadbeefabaddad2",
        "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72
         1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39",
        "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e
         21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e091
         5bc94fbc3221a5db94fae95ae7121a47",
    ];
    check(Cipher::Aes128Gcm, case);
}

#[test]
fn sha_256_is_that_of_fips_180_2_appendix_b_1() {
    let answer = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert_eq!(AwsLc::new().sha256(b"abc").to_vec(), hex(answer));
}

/// The vector that the working group of TLS published for P_SHA256.
#[test]
fn the_prf_is_that_of_the_published_vector() {
    let answer = hex(
        "e3f229ba727be17b8d122620557cd453c2aab21d07c3d495329b52d4e61edb5a
         6b301791e90d35c9c9a46b4e14baf9af0fa022f7077def17abfd3797c0564bab
         4fbc91666e9def9b97fce34f796789baa48082d122ee42c5a72e5a5110fff701
         87347b66",
    );
    let (secret, seed) = (
        hex("9bbe436ba940f017b17652849a71db35"),
        hex("a0ba9f936cda311827a6f796ffd5198c"),
    );
    for length in [0, 1, 31, 32, 33, answer.len()] {
        let mut out = vec![0; length];
        let parts = [&seed[..5], &[], &seed[5..]];
        AwsLc::new().prf(&secret, b"test label", &parts, &mut out);
        assert_eq!(out, answer[..length]);
    }
}

fn agree(group: Group, secret: &str, peer: &str) -> Option<Vec<u8>> {
    let secret = GroupSecret::new(group, &bytes(secret)).expect("it is a secret");
    let shared = AwsLc::new().agree(secret, &hex(peer));
    shared.map(|shared| shared.to_vec())
}

#[test]
fn x25519_is_that_of_rfc_7748_section_6_1() {
    let secret = "77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a";
    let peer = "de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f";
    let shared = "4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742";
    assert_eq!(agree(Group::X25519, secret, peer), Some(hex(shared)));
    let zeros = "00".repeat(32);
    assert_eq!(agree(Group::X25519, secret, &zeros), None);
    assert_eq!(agree(Group::X25519, secret, &peer[2..]), None);
}

#[test]
fn p_256_is_that_of_rfc_5903_section_8_1() {
    let secret = "c88f01f510d9ac3f70a292daa2316de544e9aab8afe84049c62a9c57862d1433";
    let peer = "04
        d12dfb5289c8d4f81208b70270398c342296970a0bccb74c736fc7554494bf63
        56fbf3ca366cc23e8157854c13c58d6aac23f046ada30f8353e74f33039872ab";
    let shared = "d6840f6b42f6edafd13116e0e12565202fef8e9ece7dce03812464d04b9442de";
    assert_eq!(agree(Group::P256, secret, peer), Some(hex(shared)));
    let beside = peer.replace("72ab", "72ac");
    assert_eq!(agree(Group::P256, secret, &beside), None);
}

#[test]
fn two_ends_agree_and_randomness_follows_from_a_seed() {
    for group in Group::ALL {
        let mut crypto = AwsLc::seeded(1);
        let (one, one_public) = crypto.secret(group).expect("a secret");
        let (other, other_public) = crypto.secret(group).expect("a secret");
        let shared = crypto.agree(one, other_public.as_bytes());
        assert_eq!(shared, crypto.agree(other, one_public.as_bytes()));
        let (_, again) = AwsLc::seeded(1).secret(group).expect("a secret");
        assert_eq!(again, one_public);
    }
    let mut system = [[0; 20]; 2];
    system
        .iter_mut()
        .for_each(|bytes| assert!(AwsLc::new().random(bytes)));
    assert_ne!(system[0], system[1]);
}

#[test]
fn keys_are_not_printed() {
    let key = AwsLc::new().aead(Cipher::Aes128Gcm, &[0xab; 16]);
    assert_eq!(format!("{key:?}"), "RecordKey(Aes128Gcm)");
}
