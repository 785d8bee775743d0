//! Keys that sign manifests: Ed25519, one line of text a file.

use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};
use sha2::{Digest as _, Sha256};

use crate::error::Error;
use crate::hex;

const SECRET: &str = "tamis-secret-key-1 ";
const PUBLIC: &str = "tamis-public-key-1 ";

/// Bytes of the name of a key: the first of its SHA-256.
pub(crate) const ID_BYTES: usize = 8;
/// Bytes of a signature.
pub(crate) const SIGNATURE_BYTES: usize = 64;

/// The key that signs; keep it to the publisher.
///
/// ```
/// use tamis_exchange::SecretKey;
/// let key = SecretKey::generate()?;
/// let copy = SecretKey::parse(&key.to_text())?;
/// assert_eq!(key.public().to_text(), copy.public().to_text());
/// # Ok::<(), tamis_exchange::Error>(())
/// ```
pub struct SecretKey(SigningKey);

/// The key that followers check signatures with.
///
/// ```
/// use tamis_exchange::{PublicKey, SecretKey};
/// let text = SecretKey::generate()?.public().to_text();
/// assert!(PublicKey::parse(&text).is_ok());
/// # Ok::<(), tamis_exchange::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublicKey(VerifyingKey);

impl std::fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("SecretKey").field(&self.public()).finish()
    }
}

impl SecretKey {
    /// A new key, from the randomness of the system.
    pub fn generate() -> Result<Self, Error> {
        let mut seed = [0; 32];
        getrandom::fill(&mut seed).map_err(|fault| Error::format("key", fault.to_string()))?;
        Ok(Self(SigningKey::from_bytes(&seed)))
    }

    /// The key in the text of a file.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let wrong = "not a secret key; `tamis keygen -o KEY` writes one";
        let digits = text.trim_end().strip_prefix(SECRET).and_then(hex::decode);
        Ok(Self(SigningKey::from_bytes(&digits.ok_or_else(|| Error::format("key", wrong))?)))
    }

    /// The text of a file with this key.
    pub fn to_text(&self) -> String {
        format!("{SECRET}{}\n", hex::encode(self.0.as_bytes()))
    }

    /// The key that checks what this one signs.
    pub fn public(&self) -> PublicKey {
        PublicKey(self.0.verifying_key())
    }

    pub(crate) fn sign(&self, message: &[u8]) -> [u8; SIGNATURE_BYTES] {
        self.0.sign(message).to_bytes()
    }
}

impl PublicKey {
    /// The key in the text of a file.
    pub fn parse(text: &str) -> Result<Self, Error> {
        if text.starts_with(SECRET) {
            let fault = "this is a secret key; followers take the file with .pub behind its name";
            return Err(Error::format("key", fault));
        }
        let wrong = "not a public key; `tamis keygen -o KEY` writes one to KEY.pub";
        let digits = text.trim_end().strip_prefix(PUBLIC).and_then(hex::decode);
        let key = digits.and_then(|bytes| VerifyingKey::from_bytes(&bytes).ok());
        key.filter(|key| !key.is_weak()).map(Self).ok_or_else(|| Error::format("key", wrong))
    }

    /// The text of a file with this key.
    pub fn to_text(&self) -> String {
        format!("{PUBLIC}{}\n", hex::encode(self.0.as_bytes()))
    }

    /// A short name for the key, which tells apart a wrong key from a forged signature.
    pub(crate) fn id(&self) -> [u8; ID_BYTES] {
        let mut id = [0; ID_BYTES];
        id.copy_from_slice(&Sha256::digest(self.0.as_bytes())[..ID_BYTES]);
        id
    }

    pub(crate) fn verify(
        &self,
        message: &[u8],
        id: [u8; ID_BYTES],
        signature: [u8; SIGNATURE_BYTES],
    ) -> Result<(), Error> {
        if id != self.id() {
            return Err(Error::Signature("the manifest is signed with another key"));
        }
        self.0
            .verify_strict(message, &Signature::from_bytes(&signature))
            .map_err(|_| Error::Signature("the manifest was changed after it was signed"))
    }
}
