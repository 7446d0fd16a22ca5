//! Logins that a client names itself, in fields or in the query of its address.

use super::{Form, Request};

/// Fields that hold a login, or choose the account that it is for.
const LOGINS: [&str; 10] = [
    "api-key",
    "authorization",
    "chatgpt-account-id",
    "cookie",
    "openai-organization",
    "openai-project",
    "x-api-key",
    "x-goog-api-key",
    "x-goog-user-project",
    "x-organization-uuid",
];
/// Parameters of a query that hold a login, or choose the account that it is for.
const LOGIN_PARAMETERS: [&str; 8] = [
    "access_token",
    "api_key",
    "apikey",
    "key",
    "oauth_token",
    "quotauser",
    "token",
    "userproject",
];

impl Request {
    /// The same request without a login of the client's own.
    #[must_use]
    pub fn without_logins(&self) -> Self {
        // Many servers read `_` in the name of a field as `-`.
        let is_login = |name: &str| LOGINS.contains(&&*name.replace('_', "-"));
        let mut fields = self.fields.clone();
        for (name, _) in self.fields.lower().filter(|(name, _)| is_login(name)) {
            fields = fields.without(&name);
        }
        Self {
            fields,
            ..self.clone()
        }
    }

    /// Whether the query holds a login of the client's own, or could.
    pub fn has_login_in_query(&self) -> bool {
        let Form::Plain(path) = &self.form else {
            return false;
        };
        let query = path.split_once('?').map_or("", |(_, query)| query);
        let mut names = query.split(['&', ';']).map(|pair| {
            let name = pair.split('=').next().unwrap_or_default();
            name.trim_start_matches('$').to_ascii_lowercase()
        });
        names.any(|name| LOGIN_PARAMETERS.contains(&name.as_str()) || name.contains(['%', '+']))
    }
}
