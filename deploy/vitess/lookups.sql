-- A lookup table of Vitess: the shard of each payment number. It makes a provider's payment number
-- unique over all shards. Vitess fills it. Apply this file to the keyspace before vschema.json.
CREATE TABLE IF NOT EXISTS payments_by_number (
    payment_id  VARCHAR(64)    NOT NULL,
    keyspace_id VARBINARY(128) NOT NULL,
    PRIMARY KEY (payment_id)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
