"""The layers that fill the tiers: from Redis, from entries past their expiry, from the source; renewals; the feed."""
