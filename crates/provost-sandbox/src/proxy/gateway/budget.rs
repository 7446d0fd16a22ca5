//! A budget of tokens and money that requests reserve from before they are forwarded.
//!
//! # Invariants
//!
//! - [`BudgetAccount::reserve`] succeeds only if all that was settled and all that is reserved, the
//!   new reservation included, is within the grant.
//! - What a provider reports beyond a reservation is settled in full and counted as overshoot: less
//!   is left for the next request.

use std::collections::BTreeMap;

use super::table::Prices;

/// Tokens and money.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Amount {
    pub tokens: u64,
    /// Millionths of a US dollar.
    pub micro_usd: u64,
}

impl Amount {
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            tokens: self.tokens.saturating_add(other.tokens),
            micro_usd: self.micro_usd.saturating_add(other.micro_usd),
        }
    }

    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        Self {
            tokens: self.tokens.saturating_sub(other.tokens),
            micro_usd: self.micro_usd.saturating_sub(other.micro_usd),
        }
    }
}

/// The most that may be spent; `None` is no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Grant {
    pub tokens: Option<u64>,
    pub micro_usd: Option<u64>,
}

impl Grant {
    pub fn is_open(self) -> bool {
        self == Self::default()
    }

    /// Whether `spent` is within it.
    pub fn covers(self, spent: Amount) -> bool {
        let within = |most: Option<u64>, spent: u64| most.is_none_or(|most| spent <= most);
        within(self.tokens, spent.tokens) && within(self.micro_usd, spent.micro_usd)
    }
}

/// What a request may cost.
#[derive(Debug, Clone, Copy)]
pub struct Cost<'a> {
    /// Tokens that the model reads, as estimated.
    pub input: u64,
    /// The most tokens that it may write.
    pub output: u64,
    /// The least for which the request is worth sending.
    pub least_output: u64,
    /// `None` if the prices of the model are not known.
    pub prices: Option<&'a Prices>,
    /// What is left of budgets that are shared with others.
    pub shared: Grant,
}

/// What was reserved for a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reservation {
    number: u64,
    pub amount: Amount,
    /// How many tokens the model may write.
    pub output: u64,
}

/// Why nothing is reserved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shortage {
    /// Enough may be left when the other requests are settled.
    Busy,
    Spent,
    /// Money is limited, and the prices of the model are not known.
    Unpriced,
}

/// The budget of one agent.
#[derive(Debug, Clone, Default)]
pub struct BudgetAccount {
    grant: Grant,
    settled: Amount,
    open: BTreeMap<u64, Amount>,
    next: u64,
    overshoot: Amount,
}

impl BudgetAccount {
    pub fn new(grant: Grant) -> Self {
        Self {
            grant,
            ..Self::default()
        }
    }

    pub fn grant(&self) -> Grant {
        self.grant
    }

    pub fn settled(&self) -> Amount {
        self.settled
    }

    pub fn reserved(&self) -> Amount {
        let open = self.open.values();
        open.fold(Amount::default(), |sum, amount| sum.plus(*amount))
    }

    /// What providers reported beyond reservations.
    pub fn overshoot(&self) -> Amount {
        self.overshoot
    }

    /// Reserves for a request; its output may be lowered to what is left.
    pub fn reserve(&mut self, cost: &Cost<'_>) -> Result<Reservation, Shortage> {
        let money = self.grant.micro_usd.or(cost.shared.micro_usd);
        if money.is_some() && cost.prices.is_none() {
            return Err(Shortage::Unpriced);
        }
        let taken = self.settled.plus(self.reserved());
        let Some((output, amount)) = self.fitting(cost, taken) else {
            let alone = Cost {
                shared: Grant::default(),
                ..*cost
            };
            let later = !self.open.is_empty() && self.fitting(&alone, self.settled).is_some();
            return Err(if later {
                Shortage::Busy
            } else {
                Shortage::Spent
            });
        };
        let number = self.next;
        self.next += 1;
        self.open.insert(number, amount);
        Ok(Reservation {
            number,
            amount,
            output,
        })
    }

    /// The largest output that fits when `taken` is gone, and what it costs.
    fn fitting(&self, cost: &Cost<'_>, taken: Amount) -> Option<(u64, Amount)> {
        let mut output = cost.output;
        if let Some(most) = self.grant.tokens {
            let left = most.checked_sub(taken.tokens)?.checked_sub(cost.input)?;
            output = output.min(left);
        }
        if let Some(left) = cost.shared.tokens {
            output = output.min(left.checked_sub(cost.input)?);
        }
        let price = |output| {
            cost.prices
                .map_or(0, |prices| prices.most(cost.input, output))
        };
        if let (Some(most), Some(prices)) = (self.grant.micro_usd, cost.prices) {
            let left = most.checked_sub(taken.micro_usd)?;
            output = output.min(prices.output_within(cost.input, left)?);
        }
        if let (Some(left), Some(prices)) = (cost.shared.micro_usd, cost.prices) {
            output = output.min(prices.output_within(cost.input, left)?);
        }
        let amount = Amount {
            tokens: cost.input.saturating_add(output),
            micro_usd: price(output),
        };
        let within = self.grant.covers(taken.plus(amount)) && cost.shared.covers(amount);
        let fits = output >= cost.least_output && within;
        fits.then_some((output, amount))
    }

    /// Ends a reservation with what the request `spent`.
    pub fn settle(&mut self, reservation: &Reservation, spent: Amount) {
        if self.open.remove(&reservation.number).is_some() {
            self.settled = self.settled.plus(spent);
            let beyond = spent.minus(reservation.amount);
            self.overshoot = self.overshoot.plus(beyond);
        }
    }
}

#[cfg(test)]
mod tests;
