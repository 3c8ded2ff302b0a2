//! Finds the archives of a log (RUN-6): the segments before its markers.
//!
//! Invariant: each marker has the offset of the previous one and the number of messages
//! before it, so that listing costs only the number of markers. Only old logs, whose
//! markers lack these, are read completely.

use crate::error::unreadable;
use crate::fs::LogFile;
use crate::line::{self, Kind, Line, Marker, Stamp};
use crate::tail::{Backward, line_at};
use crabtalk_domain::storage::{ArchiveInfo, Error, archive_title};
use std::io;
use std::path::Path;

/// The markers found by reading a part of an old log.
#[derive(Debug)]
pub(crate) struct Scan {
    /// Offsets of markers, each with the number of messages before it, oldest first.
    markers: Vec<(u64, u64)>,
    pub(crate) messages: u64,
}

/// Returns the markers within `floor..upto` of a log.
pub(crate) fn scan(file: &dyn LogFile, floor: u64, upto: u64) -> io::Result<Scan> {
    let (mut markers, mut behind) = (Vec::new(), 0);
    let mut lines = Backward::new(file, floor, upto);
    while let Some((offset, bytes)) = lines.prev()? {
        match line::kind(bytes) {
            Kind::Message => behind += 1,
            Kind::Marker => markers.push((offset, behind)),
            Kind::Other => {}
        }
    }
    let messages = behind;
    markers.reverse();
    for (_, behind) in &mut markers {
        *behind = messages - *behind;
    }
    Ok(Scan { markers, messages })
}

/// A marker and its position.
pub(crate) struct Placed {
    pub(crate) offset: u64,
    /// Offset of the line after it.
    pub(crate) end: u64,
    pub(crate) marker: Marker,
    /// Number of messages in the file before it.
    pub(crate) messages: u64,
}

/// The markers of a log, oldest first.
pub(crate) fn markers(file: &dyn LogFile, path: &Path, floor: u64) -> Result<Vec<Placed>, Error> {
    let io = |e| unreadable("read", path, e);
    let end = file.stat().map_err(io)?.len;
    let mut placed = Vec::new();
    let mut scan_upto = 0;
    let mut next = last_marker(file, floor, end).map_err(io)?;
    while let Some(offset) = next {
        let found = marker_at(file, offset, end).map_err(io)?;
        let Some((marker, line_end)) = found else {
            // An external edit moved the marker: earlier links are invalid.
            scan_upto = placed
                .last()
                .map_or(0, |p: &Placed| p.offset)
                .max(scan_upto);
            break;
        };
        let Stamp { prev, messages } = marker.stamp;
        if messages.is_none() || prev.is_none_or(|prev| prev != 0 && prev >= offset) {
            scan_upto = scan_upto.max(offset);
        }
        placed.push(Placed {
            offset,
            end: line_end,
            marker,
            messages: messages.unwrap_or(0),
        });
        next = prev.filter(|prev| *prev != 0 && *prev < offset);
    }
    placed.reverse();
    if scan_upto > 0 {
        let scan = scan(file, floor, scan_upto).map_err(io)?;
        let newer: Vec<_> = placed
            .into_iter()
            .filter(|p| p.offset >= scan_upto)
            .collect();
        placed = Vec::new();
        for (offset, messages) in &scan.markers {
            if let Some((marker, line_end)) = marker_at(file, *offset, end).map_err(io)? {
                let (offset, messages) = (*offset, *messages);
                placed.push(Placed {
                    offset,
                    end: line_end,
                    marker,
                    messages,
                });
            }
        }
        placed.extend(newer.into_iter().map(|mut p| {
            if p.offset == scan_upto {
                p.messages = scan.messages;
            }
            p
        }));
    }
    Ok(placed)
}

/// Converts markers to items of a list.
pub(crate) fn infos(markers: &[Placed]) -> Vec<ArchiveInfo> {
    let mut before = 0;
    let number = |index| u32::try_from(index + 1).unwrap_or(u32::MAX);
    let info = |(index, placed): (usize, &Placed)| {
        let message_count = placed.messages.saturating_sub(before);
        before = placed.messages;
        let marker = &placed.marker;
        let title = match marker.title.as_str() {
            "" => archive_title(&marker.summary),
            title => title.to_owned(),
        };
        ArchiveInfo {
            index: number(index),
            marker: placed.offset,
            title,
            archived_at: marker.archived_at.clone(),
            message_count,
            summary: marker.summary.clone(),
        }
    };
    markers.iter().enumerate().map(info).collect()
}

/// The offset of the last marker.
fn last_marker(file: &dyn LogFile, floor: u64, end: u64) -> io::Result<Option<u64>> {
    let mut lines = Backward::new(file, floor, end);
    while let Some((offset, bytes)) = lines.prev()? {
        if line::kind(bytes) == Kind::Message {
            continue;
        }
        let stamp = match line::parse(bytes) {
            Ok(Line::Marker(_)) => return Ok(Some(offset)),
            Ok(Line::Rewind(_, stamp) | Line::Meta(_, stamp) | Line::Run(_, stamp)) => stamp,
            Ok(Line::Message(_) | Line::ForeignRole | Line::Unknown) | Err(_) => continue,
        };
        match stamp.prev {
            Some(0) => return Ok(None),
            Some(at) if marker_at(file, at, end)?.is_some() => return Ok(Some(at)),
            _ => {}
        }
    }
    Ok(None)
}

fn marker_at(file: &dyn LogFile, offset: u64, end: u64) -> io::Result<Option<(Marker, u64)>> {
    let Some(bytes) = line_at(file, offset, end)? else {
        return Ok(None);
    };
    let line_end = offset + bytes.len() as u64 + 1;
    match line::parse(&bytes) {
        Ok(Line::Marker(marker)) => Ok(Some((marker, line_end))),
        _ => Ok(None),
    }
}
