//! The framing of the PostgreSQL protocol, as far as a proxy needs it.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt};

/// The codes of a startup packet that requests TLS or GSSAPI encryption.
pub(crate) const ENCRYPTION_REQUESTS: [u32; 2] = [80_877_103, 80_877_104];

/// A message with its header.
pub(crate) struct Message {
    pub(crate) bytes: Vec<u8>,
}

impl Message {
    pub(crate) fn kind(&self) -> u8 {
        self.bytes[0]
    }

    /// The text that ends with the `index`-th zero byte of the body.
    pub(crate) fn text(&self, index: usize) -> String {
        let body = &self.bytes[5..];
        let text = body.split(|byte| *byte == 0).nth(index).unwrap_or_default();
        String::from_utf8_lossy(text).into_owned()
    }
}

/// The next message, or `None` at the end of the stream.
pub(crate) async fn read(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<Message>> {
    let mut kind = [0];
    if stream.read(&mut kind).await? == 0 {
        return Ok(None);
    }
    let mut bytes = kind.to_vec();
    read_sized(stream, &mut bytes).await?;
    Ok(Some(Message { bytes }))
}

/// The first packet of a connection, which has no type: its bytes and its code.
pub(crate) async fn read_startup(
    stream: &mut (impl AsyncRead + Unpin),
) -> io::Result<(Vec<u8>, u32)> {
    let mut bytes = Vec::new();
    read_sized(stream, &mut bytes).await?;
    let code = bytes.get(4..8).and_then(|code| code.try_into().ok()).map(u32::from_be_bytes);
    code.map(|code| (bytes, code)).ok_or_else(malformed)
}

/// Appends a length, which includes itself, and the bytes that it counts.
async fn read_sized(stream: &mut (impl AsyncRead + Unpin), into: &mut Vec<u8>) -> io::Result<()> {
    let length = stream.read_u32().await?;
    into.extend_from_slice(&length.to_be_bytes());
    let rest = (length as usize).checked_sub(4).ok_or_else(malformed)?;
    let start = into.len();
    into.resize(start + rest, 0);
    stream.read_exact(&mut into[start..]).await?;
    Ok(())
}

fn malformed() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "not PostgreSQL's protocol")
}
