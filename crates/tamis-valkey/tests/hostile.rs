//! Forged dumps, chunks and payloads: an error, and the server goes on.
#![allow(missing_docs)]

mod harness;

use harness::{Client, Kind, Numbers, Server, content, fill, rounds};
use tamis::{AnyFilter, Hasher, Limits};
use tamis_testkit::hostile::repair;

/// The checksum at the end of a payload: CRC-64 (Jones), bits reflected.
fn crc64(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |crc, &byte| {
        (0..8).fold(crc ^ u64::from(byte), |crc, _| {
            if crc & 1 == 1 { crc >> 1 ^ 0x95ac_9329_ac4b_c9b5 } else { crc >> 1 }
        })
    })
}

/// A payload whose own checksum is right whatever is inside.
fn sealed(mut payload: Vec<u8>) -> Vec<u8> {
    let end = payload.len() - 8;
    let checksum = crc64(&payload[..end]).to_le_bytes();
    payload[end..].copy_from_slice(&checksum);
    payload
}

/// Changes some bytes of a part: flips, runs, numbers, cuts and repetitions.
fn forge(bytes: &mut Vec<u8>, from: usize, to: usize, numbers: &mut Numbers) {
    for _ in 0..=numbers.below(3) {
        let at = from + numbers.below(to.min(bytes.len()).saturating_sub(from));
        match numbers.below(6) {
            0 => bytes[at] ^= 1 << numbers.below(8),
            1 => bytes[at] = numbers.below(256) as u8,
            2 => {
                let end = (at + 8).min(to).min(bytes.len());
                let value = [0, 1, u64::MAX, 1 << 48, 1 << 31, 1 << 40][numbers.below(6)];
                bytes[at..end].copy_from_slice(&value.to_le_bytes()[..end - at]);
            }
            3 => {
                bytes.remove(at);
            }
            4 => bytes.insert(at, numbers.below(256) as u8),
            _ => {
                let end = (at + 1 + numbers.below(40)).min(to).min(bytes.len());
                bytes[at..end].fill(numbers.below(256) as u8);
            }
        }
    }
}

/// Where our header starts in bytes that hold one, and how long it is.
fn header(bytes: &[u8]) -> Option<(usize, usize)> {
    let start = bytes.windows(8).position(|window| window == b"TAMISVK2")?;
    let parts = bytes.get(start + 58..start + 62)?;
    let parts = u32::from_le_bytes(parts.try_into().unwrap());
    let mut end = start + 62;
    for _ in 0..parts {
        end += 27 + 8 * usize::from(*bytes.get(end + 26)?);
    }
    (end + 8 <= bytes.len()).then_some((start, end + 8 - start))
}

/// Makes the checksum of our header right again.
fn seal_header(bytes: &mut [u8], (start, len): (usize, usize)) {
    let end = start + len - 8;
    let checksum = Hasher::default().digest_bytes(&bytes[start..end]).0;
    bytes[end..end + 8].copy_from_slice(&checksum.to_le_bytes());
}

fn command(words: &[&[u8]]) -> Vec<Vec<u8>> {
    words.iter().map(|word| word.to_vec()).collect()
}

/// A server to attack, what it holds, and what went on.
struct Attack {
    client: Client,
    numbers: Numbers,
    payloads: Vec<Vec<u8>>,
    /// What is sent of each kind.
    each: usize,
}

const SOURCES: [&str; 4] = ["set", "multiset", "plain", "counted"];

fn restore(key: usize, payload: Vec<u8>) -> Vec<Vec<u8>> {
    command(&[b"RESTORE", format!("forged{key}").as_bytes(), b"0", &sealed(payload)])
}

impl Attack {
    fn payload(&mut self) -> Vec<u8> {
        self.payloads[self.numbers.below(SOURCES.len())].clone()
    }

    /// Sends forged bytes. What is accepted must be legal; all else was refused.
    fn send(&mut self, what: &str, commands: &[Vec<Vec<u8>>]) {
        let (mut refused, mut legal) = (0, 0);
        for part in commands.chunks(100) {
            for (reply, command) in self.client.pipeline(part).into_iter().zip(part) {
                if reply.is_error() {
                    refused += 1;
                    continue;
                }
                self.prove(&command[1]);
                legal += 1;
            }
        }
        println!("{what}: {} sent, {refused} refused, {legal} legal filters", commands.len());
    }

    /// Checks that a key holds a legal filter: the library decodes its layers and finds them
    /// valid, and all commands work on it. Then the key is deleted.
    fn prove(&mut self, key: &[u8]) {
        let client = &mut self.client;
        let info = client.send(&[b"TAMIS.INFO".as_slice(), key]);
        if info.to_string().contains("still being loaded") {
            // The beginning of one, which can be saved too.
            assert!(!client.send(&[b"DUMP".as_slice(), key]).is_error());
            client.send(&[b"DEL".as_slice(), key]);
            return;
        }
        assert!(!info.is_error(), "{info}");
        for (number, layer) in info.field("layers").elements().iter().enumerate() {
            let (number, mut ids) = (number.to_string(), Vec::new());
            for form in
                [&[b"LAYER", number.as_bytes()][..], &[b"LAYER", number.as_bytes(), b"PACKED"]]
            {
                let dump = client.send(&[&[b"TAMIS.DUMP".as_slice(), key], form].concat());
                if dump.to_string() == "-ERR no filter has this universe" {
                    continue; // What the header says of it is believed.
                }
                let filter = AnyFilter::decode(dump.bytes(), Limits::default()).unwrap();
                filter.validate().unwrap();
                ids.push(filter.content_id());
            }
            assert!(ids.first() == ids.last(), "{layer}");
        }
        let words: &[&str] = if info.field("family").bytes() == b"bloom" {
            &["BF.ADD", "BF.EXISTS", "BF.INFO", "BF.CARD", "BF.DEBUG"]
        } else {
            &["CF.ADD", "CF.ADDNX", "CF.EXISTS", "CF.COUNT", "CF.DEL", "CF.INFO", "CF.DEBUG"]
        };
        for word in words.iter().chain(&["TAMIS.COUNT", "TAMIS.INFO", "DUMP", "DEL"]) {
            let with_item = ["ADD", "NX", "EXISTS", "COUNT", ".DEL"];
            let item = with_item.iter().any(|end| word.ends_with(end)).then_some(&b"item"[..]);
            let command: Vec<&[u8]> = [word.as_bytes(), key].into_iter().chain(item).collect();
            let said = client.send(&command).to_string();
            // A filter that says that it is full, or that its next layer is too large, is legal.
            let full = ["full", "size limit", "expansions", "ould not create", "max number"];
            assert!(
                !said.starts_with('-') || full.iter().any(|reason| said.contains(reason)),
                "{word}: {said}"
            );
        }
    }

    fn content_of(&mut self, key: &str) -> String {
        content(&mut self.client, key)
    }

    /// Payloads with any bytes changed behind the name of the type: refused, except where the
    /// server itself ignores the change, or where the changed bytes end early: a filter of which
    /// chunks are missing answers nothing.
    fn any_byte(&mut self) {
        let known = SOURCES.map(|key| self.content_of(key));
        let mut refused = 0;
        for _ in 0..self.each {
            let original = self.payload();
            let mut payload = original.clone();
            let end = payload.len() - 10;
            forge(&mut payload, 10, end, &mut self.numbers);
            let reply = self.client.send(&restore(0, payload.clone()));
            if reply.is_error() {
                refused += 1;
                continue;
            }
            let content = self.content_of("forged0");
            let info = self.client.say("TAMIS.INFO forged0").to_string();
            let is_part = info.contains("chunks are missing");
            assert!(
                is_part || known.contains(&content),
                "accepted, and no server wrote it: {info}"
            );
            self.client.say("DEL forged0");
        }
        println!("RESTORE, any byte: {} sent, {refused} refused, the others unchanged", self.each);
    }

    /// Payloads in which our header was forged, with the right checksum.
    fn lying_header(&mut self) {
        let mut commands = Vec::new();
        for _ in 0..self.each {
            let mut payload = self.payload();
            let place = header(&payload).unwrap();
            let at = place.0 + 8 + self.numbers.below(place.1 - 16);
            payload[at] ^= 1 << self.numbers.below(8);
            seal_header(&mut payload, place);
            commands.push(restore(commands.len(), payload));
        }
        self.send("RESTORE, our header", &commands);
    }

    /// Payloads in which a chunk was forged, with all checksums right: what is accepted is a
    /// filter, and answers.
    fn lying_chunk(&mut self) {
        let mut commands = Vec::new();
        let scans = ["BF.SCANDUMP", "CF.SCANDUMP"].repeat(2);
        for (at, (source, scan)) in SOURCES.into_iter().zip(scans).enumerate() {
            let reply = self.client.send(&[scan, source, "1"]);
            let chunk = reply.elements()[1].bytes();
            let mut windows = self.payloads[at].windows(chunk.len());
            let place = windows.position(|window| window == chunk).expect("the same chunk");
            for _ in 0..self.each / SOURCES.len() {
                let mut payload = self.payloads[at].clone();
                let bytes = &mut payload[place..place + chunk.len()];
                for _ in 0..=self.numbers.below(3) {
                    let reach = [40, bytes.len() - 8][self.numbers.below(2)].min(bytes.len() - 8);
                    bytes[self.numbers.below(reach)] ^= 1 << self.numbers.below(8);
                }
                let (body, checksum) = bytes.split_at_mut(chunk.len() - 8);
                checksum.copy_from_slice(&Hasher::default().digest_bytes(body).0.to_le_bytes());
                commands.push(restore(commands.len(), payload));
            }
        }
        self.send("RESTORE, chunks", &commands);
    }

    /// Headers and chunks of dumps.
    fn chunks(&mut self) {
        let (mut commands, mut refused, mut partial, mut legal) = (Vec::new(), 0, 0, 0);
        for (source, family) in SOURCES.into_iter().zip(["BF", "CF", "BF", "CF"]) {
            let (scan, load) = (format!("{family}.SCANDUMP"), format!("{family}.LOADCHUNK"));
            let first = self.client.send(&[scan.as_str(), source, "0"]);
            let second = self.client.send(&[scan.as_str(), source, "1"]);
            let original = first.elements()[1].bytes();
            let (end, body) = (second.elements()[0].int(), second.elements()[1].bytes());
            for round in 0..self.each / 4 {
                let numbers = &mut self.numbers;
                let mut head = original.to_vec();
                let to = head.len();
                forge(&mut head, 0, to, numbers);
                let whole = header(&head).filter(|&(start, len)| start + len == head.len());
                if let Some(place) = whole.filter(|_| round % 2 == 0) {
                    seal_header(&mut head, place);
                }
                let mut chunk = body.to_vec();
                let to = chunk.len();
                forge(&mut chunk, 0, to, numbers);
                let wrong = numbers.below(1 << 20) as i64 - 1000;
                let wrong = if numbers.below(4) == 0 { wrong } else { end }.to_string();
                // The right bytes under a forged header; forged bytes under the right header, or
                // in the wrong place.
                let end = end.to_string();
                for (head, end, chunk) in [(&head[..], &end, body), (original, &wrong, &chunk)] {
                    let key = format!("chunked{}", commands.len()).into_bytes();
                    commands.push(command(&[load.as_bytes(), &key, b"1", head]));
                    commands.push(command(&[load.as_bytes(), &key, end.as_bytes(), chunk]));
                }
            }
        }
        for part in commands.chunks(100) {
            let replies = self.client.pipeline(part);
            for (replies, commands) in replies.chunks(2).zip(part.chunks(2)) {
                let key = &commands[0][1];
                let info = self.client.send(&[b"TAMIS.INFO".as_slice(), key]).to_string();
                if info.contains("still being loaded") {
                    // No filter yet; a chunk was refused, or it was the beginning of one.
                    partial += u32::from(!replies[1].is_error());
                    refused += u32::from(replies[1].is_error());
                    self.client.send(&[b"DEL".as_slice(), key]);
                } else if replies[0].is_error() {
                    assert!(replies[1].is_error(), "a chunk without a header");
                    refused += 1;
                } else {
                    self.prove(key);
                    legal += 1;
                }
            }
        }
        let sent = commands.len() / 2;
        println!(
            "LOADCHUNK: {sent} dumps sent, {refused} refused, {partial} without an end, {legal} legal filters"
        );
    }

    /// Files in the wire format, and announcements of layers.
    fn files(&mut self) {
        let mut commands = Vec::new();
        for source in SOURCES {
            let dump = self.client.send(&["TAMIS.DUMP", source, "LAYER", "0"]);
            let packed = self.client.send(&["TAMIS.DUMP", source, "LAYER", "0", "PACKED"]);
            for _ in 0..self.each / 8 {
                let numbers = &mut self.numbers;
                let mut bytes = [dump.bytes(), packed.bytes()][numbers.below(2)].to_vec();
                lie(&mut bytes, numbers);
                let bytes = repair(&bytes).unwrap_or(bytes);
                let family = [b"BLOOM".as_slice(), b"CUCKOO"][numbers.below(2)];
                let key = format!("forged{}", commands.len());
                commands.push(command(&[b"TAMIS.LOAD", key.as_bytes(), family, &bytes]));
                commands.push(command(&[b"TAMIS.LAYER", b"layered", &announcement(numbers)]));
            }
        }
        self.send("TAMIS.LOAD and TAMIS.LAYER", &commands);
    }
}

/// Changes a byte, one time of two near the start, where layouts and lengths stand.
fn lie(bytes: &mut [u8], numbers: &mut Numbers) {
    let reach = if numbers.below(2) == 0 { 160.min(bytes.len()) } else { bytes.len() };
    let at = 8 + numbers.below(reach - 8);
    let bit = 1 << numbers.below(8);
    bytes[at] = if numbers.below(2) == 0 { bytes[at] ^ bit } else { numbers.below(256) as u8 };
}

/// An announcement with senseless numbers, and the right checksum.
fn announcement(numbers: &mut Numbers) -> Vec<u8> {
    let mut out = b"TAMISVL2".to_vec();
    out.extend([numbers.below(2) as u8, 1]);
    out.extend([0; 16]);
    out.extend([0.01_f64, 1e-9, 0.9][numbers.below(3)].to_bits().to_le_bytes());
    for value in [1_u64 << numbers.below(63), 2, 0x000a_0002] {
        out.extend(value.to_le_bytes());
    }
    out.extend([numbers.below(17) as u8, 0]);
    for _ in 0..numbers.below(7) {
        out.extend((1_u64 << numbers.below(64)).to_le_bytes());
    }
    let checksum = Hasher::default().digest_bytes(&out).0;
    out.extend(checksum.to_le_bytes());
    out
}

#[test]
fn nothing_forged_stops_the_server() {
    assert_eq!(crc64(b"123456789"), 0xe9c6_d914_c4b8_d9ca, "the published check value");
    for kind in Kind::ALL {
        let mut server = Server::start(kind, &["--rdbcompression", "no"]);
        let mut client = server.client();
        fill(&mut client);
        client.say("BF.RESERVE plain 0.0001 200");
        client.say("BF.MADD plain a b c d e");
        client.say("CF.INSERT counted ITEMS a a a a b c");
        let payloads = SOURCES.map(|key| client.send(&["DUMP", key]).bytes().to_vec()).to_vec();
        let each = rounds("TAMIS_FORGED", 1_000) as usize;
        let mut attack = Attack { client, numbers: Numbers(7), payloads, each };
        attack.files();
        let resident = server.resident();
        attack.any_byte();
        attack.lying_header();
        attack.lying_chunk();
        attack.chunks();
        attack.files();
        let mut client = server.client();
        let info = client.send(&["INFO", "bf_filters"]).to_string();
        assert!(info.contains("bf_caught_panics:0"), "{info}\n{}", server.log());
        let grown = server.resident().saturating_sub(resident);
        println!("{kind:?}: {grown} bytes more are resident");
        assert!(server.is_running() && grown < 100 << 20, "{grown} bytes more");
        assert_eq!(client.send(&["BF.EXISTS", "set", "1"]).int(), 1);
    }
}
