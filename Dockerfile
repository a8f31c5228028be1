# One target for each image: docker build --target manager -t NAME .
#
# Images are static binaries on an empty base, run as user 65532: no shell, no
# package manager, nothing to patch but the binary itself.

# Compiles on the builder's own platform and cross-compiles for the target's.
FROM --platform=$BUILDPLATFORM golang:1.26-bookworm AS build
WORKDIR /src

# The modules change rarely; a layer of their own survives every change of code.
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod go mod download

COPY . .
ARG TARGETOS TARGETARCH
ENV CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH

FROM build AS build-manager
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    go build -trimpath -buildvcs=false -ldflags="-s -w" -o /out/manager ./cmd/manager

FROM build AS build-scheduler
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    go build -trimpath -buildvcs=false -ldflags="-s -w" -o /out/scheduler ./cmd/scheduler

# static holds CA certificates, time zones and /etc/passwd, and nothing that runs.
FROM gcr.io/distroless/static-debian12:nonroot AS manager
LABEL org.opencontainers.image.title="gpu-orchestrator manager" \
      org.opencontainers.image.source="https://github.com/reyisjones/gpu-orchestrator" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build-manager /out/manager /manager
# By number: Kubernetes cannot check runAsNonRoot against a name.
USER 65532:65532
EXPOSE 8080 8081
ENTRYPOINT ["/manager"]

FROM gcr.io/distroless/static-debian12:nonroot AS scheduler
LABEL org.opencontainers.image.title="gpu-orchestrator scheduler" \
      org.opencontainers.image.source="https://github.com/reyisjones/gpu-orchestrator" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build-scheduler /out/scheduler /scheduler
USER 65532:65532
EXPOSE 10259
ENTRYPOINT ["/scheduler"]
