-- +goose Up
-- Keys of merchants' back ends. hash is the SHA-256 of the secret in hex. scopes are separated by
-- spaces. last_used_at is within about a minute. A key is valid until revoked_at. An empty created_by
-- or revoked_by is the operator's command line.
CREATE TABLE IF NOT EXISTS api_keys (
    id           VARCHAR(26)  NOT NULL,
    merchant_id  VARCHAR(64)  NOT NULL,
    name         VARCHAR(80)  NOT NULL,
    scopes       VARCHAR(255) NOT NULL,
    hash         VARCHAR(64)  NOT NULL,
    created_by   VARCHAR(64)  NOT NULL,
    created_at   BIGINT       NOT NULL,
    last_used_at BIGINT       NULL,
    revoked_by   VARCHAR(64)  NOT NULL,
    revoked_at   BIGINT       NULL,
    PRIMARY KEY (id)
) /*! ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin */;

-- A merchant's own list, newest first, and the number of valid keys.
CREATE INDEX api_keys_of_merchant ON api_keys (merchant_id, id, revoked_at);

-- Revoked keys that are old enough to delete.
CREATE INDEX api_keys_revoked ON api_keys (revoked_at);

-- The key with which a merchant's program made a change; empty: a person, or the system. The audit
-- log keeps the name, because it outlives the key.
ALTER TABLE sale_audit ADD COLUMN api_key_id VARCHAR(26) NOT NULL DEFAULT '';
ALTER TABLE sale_audit ADD COLUMN api_key_name VARCHAR(80) NOT NULL DEFAULT '';
ALTER TABLE stock_cuts ADD COLUMN api_key_id VARCHAR(26) NOT NULL DEFAULT '';
ALTER TABLE stock_cuts ADD COLUMN api_key_name VARCHAR(80) NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE stock_cuts DROP COLUMN api_key_name;
ALTER TABLE stock_cuts DROP COLUMN api_key_id;
ALTER TABLE sale_audit DROP COLUMN api_key_name;
ALTER TABLE sale_audit DROP COLUMN api_key_id;
DROP TABLE IF EXISTS api_keys;
