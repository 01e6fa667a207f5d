//! Verifiers of passwords.

use meridian_pki::Rules;
use meridian_pki::scram::{ITERATIONS, ITERATIONS_MAX, SALT_BYTES, Verifier};
use meridian_pki::secret::Secret;
use proptest::prelude::*;

#[test]
fn the_exchange_of_rfc_7677() {
    use base64::Engine;
    let base64 = base64::engine::general_purpose::STANDARD;
    let salt = base64.decode("W22ZaJ0SNY7soEsUEjb6gQ==").expect("base64");
    let verifier = Verifier::with_salt("pencil", salt, 4096);
    let message = "n=user,r=rOprNGfwEbeRWgbNEkqO,\
                   r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,\
                   c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
    let proof: [u8; 32] =
        base64.decode("dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=").expect("base64").try_into().expect("32 bytes");
    let answer = verifier.prove(message.as_bytes(), &proof).expect("the right proof");
    assert_eq!(base64.encode(answer), "6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=");
    for bit in 0..256 {
        let mut wrong = proof;
        wrong[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(verifier.prove(message.as_bytes(), &wrong), None);
    }
}

#[test]
fn texts_are_those_of_postgresql() {
    let verifier = Verifier::new("secret");
    let text = verifier.to_text();
    assert!(text.starts_with("SCRAM-SHA-256$4096:") && text.len() == 133, "{}", text.len());
    assert_eq!(Verifier::parse(&text), Ok(verifier.clone()));
    assert!(verifier.fits("secret") && !verifier.fits("Secret") && !verifier.fits(""));
    assert_ne!(Verifier::new("secret"), verifier, "salts differ");
    assert!(!format!("{verifier:?}").contains(&text[50..60]));
    let (keys, parameters) = ("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", "SCRAM-SHA-256$4096:AAAA");
    assert!(Verifier::is_one(&format!("{parameters}${keys}:{keys}")));
    for bad in [
        String::new(),
        "md5d41d8cd98f00b204e9800998ecf8427e".into(),
        format!("{parameters}${keys}"),
        format!("{parameters}${keys}:AAAA"),
        format!("{parameters}${keys}:{keys}:{keys}"),
        format!("{parameters}${keys}:{keys} "),
        format!("SCRAM-SHA-1$4096:AAAA${keys}:{keys}"),
        format!("SCRAM-SHA-256$0:AAAA${keys}:{keys}"),
        format!("SCRAM-SHA-256$04096:AAAA${keys}:{keys}"),
        format!("SCRAM-SHA-256$+1:AAAA${keys}:{keys}"),
        format!("SCRAM-SHA-256${}:AAAA${keys}:{keys}", ITERATIONS_MAX + 1),
        format!("SCRAM-SHA-256$4096:${keys}:{keys}"),
        format!("SCRAM-SHA-256$4096:AA=A${keys}:{keys}"),
    ] {
        assert!(!Verifier::is_one(&bad), "{bad}");
    }
}

#[test]
fn passwords_are_prepared_as_postgresql_does() {
    let same = |a: &str, b: &str| {
        let salt = vec![7; SALT_BYTES];
        Verifier::with_salt(a, salt.clone(), 1) == Verifier::with_salt(b, salt, 1)
    };
    // PostgreSQL's own tests (src/test/authentication/t/002_saslprep.pl).
    assert!(same("I\u{ad}X", "IX") && same("\u{2168}", "IX") && same("\u{aa}", "a"));
    assert!(!same("user", "USER"));
    // What SASLprep forbids is taken as it is.
    assert!(!same("foo\u{7}bar", "foobar") && !same("\u{ad}", "") && same("\u{627}1", "\u{627}1"));
}

#[test]
fn unknown_users_look_like_known_ones() {
    let secret = Secret::random();
    let mock = |user: &str| Verifier::mock(&secret, user, Rules::ALL);
    let (nobody, known) = (mock("nobody"), Verifier::new("x"));
    assert_eq!(nobody, mock("nobody"));
    assert_ne!(nobody.salt, mock("nobody2").salt);
    assert_ne!(nobody.salt, Verifier::mock(&Secret::random(), "nobody", Rules::ALL).salt);
    assert_eq!((nobody.salt.len(), nobody.iterations), (known.salt.len(), ITERATIONS));
    assert_eq!(nobody.to_text().len(), known.to_text().len());
    assert!(!nobody.fits("") && !nobody.fits("nobody"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn passwords_fit_their_verifiers(password in any::<String>(), other in any::<String>(), salt in prop::collection::vec(any::<u8>(), 1..64), iterations in 1..50u32) {
        let verifier = Verifier::with_salt(&password, salt, iterations);
        prop_assert!(verifier.fits(&password));
        let read = Verifier::parse(&verifier.to_text());
        prop_assert_eq!(read, Ok(verifier.clone()));
        let _ = verifier.fits(&other);
    }

    #[test]
    fn no_verifier_panics(at in any::<prop::sample::Index>(), to in any::<char>(), garbage in any::<String>()) {
        let text = Verifier::with_salt("x", vec![1; 16], 9).to_text();
        let mut chars: Vec<char> = text.chars().collect();
        let at = at.index(chars.len());
        chars[at] = to;
        let _ = Verifier::parse(&chars.into_iter().collect::<String>());
        prop_assert!(!Verifier::is_one(&garbage));
        let after_prefix = format!("SCRAM-SHA-256${garbage}");
        prop_assert!(!Verifier::is_one(&after_prefix));
    }
}
