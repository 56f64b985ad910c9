//! The preview that a DLQReplay is to run: its own, or that of another object whose token it quotes.

use super::controller::Guarded;
use crate::api::{DLQReplay, DLQReplaySpec, Preview, Selection, Target};
use kube::ResourceExt;
use kube::runtime::reflector::Store;

/// The preview that a token stands for, and what it was taken of.
pub struct Quoted {
    pub preview: Preview,
    pub selection: Option<Selection>,
    pub target: Option<Target>,
}

pub fn preview_of(object: &DLQReplay) -> Option<&Preview> {
    object.status.as_ref().and_then(|status| status.preview.as_ref())
}

/// The preview this object is to run. An error is a sentence for the user.
pub fn quoted(stores: &[Store<Guarded>], object: &DLQReplay) -> Result<Quoted, String> {
    if let Some(quoted) = of_other(stores, object)? {
        return Ok(quoted);
    }
    let preview = preview_of(object).cloned().ok_or("this DLQReplay has no preview yet")?;
    let (selection, target) = (object.spec.selection.clone(), object.spec.target.clone());
    Ok(Quoted { preview, selection, target })
}

/// The preview of another object, if the token of one is quoted.
pub fn of_other(stores: &[Store<Guarded>], object: &DLQReplay) -> Result<Option<Quoted>, String> {
    let Some(token) = &object.spec.preview_token else { return Ok(None) };
    let own = preview_of(object).is_some_and(|own| &own.token == token);
    if own && (object.spec.selection.is_some() || object.spec.target.is_some()) {
        return Ok(None);
    }
    let Some((spec, preview)) = find(stores, object, token) else {
        return if own {
            Ok(None)
        } else {
            Err(format!(
                "no DLQReplay in this namespace has a preview with the token {token}; nothing is sent. Take a new preview"
            ))
        };
    };
    if spec.dlq_ref != object.spec.dlq_ref {
        return Err(format!(
            "the preview with the token {token} is of ShareGroupDLQ {}; nothing is sent",
            spec.dlq_ref.name
        ));
    }
    if object.spec.selection.is_some() || object.spec.target.is_some() {
        let message = "with the previewToken of another DLQReplay, spec.selection and spec.target come from that one; leave them out";
        return Err(message.into());
    }
    Ok(Some(Quoted { preview, selection: spec.selection, target: spec.target }))
}

fn find(stores: &[Store<Guarded>], object: &DLQReplay, token: &str) -> Option<(DLQReplaySpec, Preview)> {
    stores.iter().flat_map(|store| store.state()).find_map(|other| {
        let other = other.0.as_ref().ok()?;
        let elsewhere = other.namespace() != object.namespace() || other.uid() == object.uid();
        let preview = preview_of(other).filter(|preview| !elsewhere && preview.token == token)?;
        Some((other.spec.clone(), preview.clone()))
    })
}

/// The spec with what is taken over from the quoted object.
pub fn effective(spec: &DLQReplaySpec, quoted: Option<&Quoted>) -> DLQReplaySpec {
    match quoted {
        Some(quoted) => {
            DLQReplaySpec { selection: quoted.selection.clone(), target: quoted.target.clone(), ..spec.clone() }
        }
        None => spec.clone(),
    }
}
