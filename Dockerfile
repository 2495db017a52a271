# One image with all programs: `docker build -t seckill .`, then `docker run seckill api`
# (or order-consumer, seckillctl, loadtest, standalone, ratelimitd).
#
# Optional build arguments: VERSION and COMMIT, which the programs print with -version; GOPROXY,
# GOSUMDB and GOFLAGS, with the meaning of the go command.
# Optional secret `ca`: a bundle of certificates, for a network whose proxy replaces certificates:
#   docker build --secret id=ca,src=/etc/ssl/certs/ca-certificates.crt …
FROM golang:1.26-bookworm AS build
WORKDIR /src
ARG GOPROXY GOSUMDB GOFLAGS
ENV CGO_ENABLED=0
COPY go.mod go.sum ./
RUN --mount=type=secret,id=ca --mount=type=cache,target=/go/pkg/mod \
    if [ -s /run/secrets/ca ]; then export SSL_CERT_FILE=/run/secrets/ca; fi; \
    go mod download
COPY . .
ARG VERSION COMMIT
RUN --mount=type=secret,id=ca --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    if [ -s /run/secrets/ca ]; then export SSL_CERT_FILE=/run/secrets/ca; fi; \
    stamp=flashsale.dev/seckill/internal/app; \
    mkdir -p /out/bin /out/data && go build -tags nomsgpack -trimpath \
        -ldflags="-s -w -X $stamp.version=$VERSION -X $stamp.commit=$COMMIT" -o /out/bin/ ./cmd/...

# The image contains the programs, a data directory for standalone, and the certificates that
# verify a managed MySQL or RabbitMQ over TLS.
FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /out/bin/ /bin/
COPY --from=build --chown=65532:65532 /out/data /data
ENV PATH=/bin
USER 65532:65532
EXPOSE 8080
CMD ["api"]
