-- What Vitess keeps beside our tables: which shard has a payment's number, so that a provider's number counts once over all
-- shards. Vitess fills it by itself. Apply it to the keyspace before vschema.json.
CREATE TABLE IF NOT EXISTS payments_by_number (
    payment_id  VARCHAR(64)    NOT NULL,
    keyspace_id VARBINARY(128) NOT NULL,
    PRIMARY KEY (payment_id)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
