//! At the start: the default admin is made, or made superuser.

use super::{super::Joblib, Unwritten, User, access_changed, with_address, write};
use crate::{problem::Problem, running::Running, secret::Secret};

const SECRET_BYTES_MIN: usize = 16;

pub async fn run(joblib: Joblib) -> Running {
    if joblib.own.settings.secret.as_ref().is_some_and(|secret| secret.reveal().len() < SECRET_BYTES_MIN) {
        tracing::warn!(
            "joblib_secret is shorter than {SECRET_BYTES_MIN} characters: tokens signed with it can be guessed"
        );
    }
    match admin(&joblib).await {
        Ok(()) => {}
        Err(problem) => tracing::error!(problem = %problem.0, "the default admin could not be made"),
    }
    Running::default()
}

/// Any visitor can register with an address. Only a user who verified it, or who has the password that the operator set, is promoted.
async fn is_theirs(joblib: &Joblib, user: &User, password: &Secret) -> Result<bool, Problem> {
    let knows = async {
        let (passwords, stored) = (&joblib.own.users.passwords, user.hash.as_deref());
        passwords.fits(&joblib.engine, password.reveal().to_owned(), stored).await
    };
    Ok(user.is_verified || (!password.reveal().is_empty() && knows.await?))
}

async fn admin(joblib: &Joblib) -> Result<(), Problem> {
    let Some((email, password)) = &joblib.own.settings.admin else { return Ok(()) };
    loop {
        let before = with_address(joblib, email).await?;
        let mut user = match &before {
            Some(before) if !is_theirs(joblib, &before.value, password).await? => {
                tracing::error!(
                    "the user with the address {email} was not made superuser: the address is not verified, and the user's password is \
                     not the one of joblib_admin_password. If the user is the admin, set that password or verify the user \
                     (PATCH /users/ID with is_verified); if not, delete the user"
                );
                return Ok(());
            }
            Some(before) => before.value.clone(),
            None if super::check_address(email).is_err() || super::check_password(password.reveal()).is_err() => {
                tracing::error!(
                    "there is no default admin: it needs an address and a password (joblib_admin_email and joblib_admin_password, or \
                     ZNDRAW_AUTH_DEFAULT_ADMIN_EMAIL and ZNDRAW_AUTH_DEFAULT_ADMIN_PASSWORD)"
                );
                return Ok(());
            }
            None => {
                let hash = joblib.own.users.passwords.hash(&joblib.engine, password.reveal().to_owned()).await?;
                User::new(email.clone(), Some(hash), joblib.engine.wall().await?)
            }
        };
        (user.is_active, user.is_superuser, user.is_verified) = (true, true, true);
        if before.as_ref().is_some_and(|before| before.value == user) {
            return Ok(());
        }
        match write(joblib, before.as_ref(), &user).await {
            Ok(()) => {
                access_changed(joblib).await;
                return Ok(());
            }
            // Another server was faster.
            Err(Unwritten::Taken | Unwritten::Changed) => {}
            Err(Unwritten::Other(problem)) => return Err(problem),
        }
    }
}
