/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTPS by small libraries: cc -DWITH_MBEDTLS … -lmbedtls -lmbedx509 -lmbedcrypto, or cc … -lwolfssl.
 * `get PORT COUNT PREFIX` on one connection; `serve PORT KEY CERT`, one connection after the other.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#ifdef WITH_MBEDTLS
#define MBEDTLS_ALLOW_PRIVATE_ACCESS
#include <mbedtls/version.h>

#include <mbedtls/ctr_drbg.h>
#include <mbedtls/entropy.h>
#include <mbedtls/net_sockets.h>
#include <mbedtls/ssl.h>

struct tls {
	mbedtls_ssl_context ssl;
	mbedtls_net_context net;
};
static mbedtls_ssl_config config;
static mbedtls_entropy_context entropy;
static mbedtls_ctr_drbg_context drbg;
static mbedtls_x509_crt crt;
static mbedtls_pk_context pk;

static void set_up(int server, const char *key, const char *cert)
{
	mbedtls_entropy_init(&entropy);
	mbedtls_ctr_drbg_init(&drbg);
	mbedtls_ssl_config_init(&config);
	mbedtls_ctr_drbg_seed(&drbg, mbedtls_entropy_func, &entropy, NULL, 0);
	mbedtls_ssl_config_defaults(&config, server ? MBEDTLS_SSL_IS_SERVER : MBEDTLS_SSL_IS_CLIENT,
				    MBEDTLS_SSL_TRANSPORT_STREAM, MBEDTLS_SSL_PRESET_DEFAULT);
#if MBEDTLS_VERSION_MAJOR >= 3
	mbedtls_ssl_conf_max_tls_version(
		&config, MBEDTLS_SSL_VERSION_TLS1_2); /* 1.3 wants more to be set up */
#endif
	mbedtls_ssl_conf_authmode(&config, MBEDTLS_SSL_VERIFY_NONE);
	mbedtls_ssl_conf_rng(&config, mbedtls_ctr_drbg_random, &drbg);
	if (!server)
		return;
	mbedtls_x509_crt_init(&crt);
	mbedtls_pk_init(&pk);
#if MBEDTLS_VERSION_MAJOR >= 3
	if (mbedtls_x509_crt_parse_file(&crt, cert) ||
	    mbedtls_pk_parse_keyfile(&pk, key, NULL, mbedtls_ctr_drbg_random, &drbg))
#else
	if (mbedtls_x509_crt_parse_file(&crt, cert) || mbedtls_pk_parse_keyfile(&pk, key, NULL))
#endif
		exit(2);
	mbedtls_ssl_conf_own_cert(&config, &crt, &pk);
}

static int begin(struct tls *t, int fd, int server)
{
	(void)server;
	mbedtls_ssl_init(&t->ssl);
	t->net.fd = fd;
	if (mbedtls_ssl_setup(&t->ssl, &config))
		exit(3);
	mbedtls_ssl_set_bio(&t->ssl, &t->net, mbedtls_net_send, mbedtls_net_recv, NULL);
	return mbedtls_ssl_handshake(&t->ssl) == 0;
}

static int get_some(struct tls *t, char *to, int n)
{
	return mbedtls_ssl_read(&t->ssl, (unsigned char *)to, (size_t)n);
}

static int put(struct tls *t, const char *from, int n)
{
	return mbedtls_ssl_write(&t->ssl, (const unsigned char *)from, (size_t)n);
}

static void end(struct tls *t)
{
	mbedtls_ssl_close_notify(&t->ssl);
	mbedtls_ssl_free(&t->ssl);
}
#else
#include <wolfssl/options.h>
#include <wolfssl/ssl.h>

struct tls {
	WOLFSSL *ssl;
};
static WOLFSSL_CTX *ctx;

static void set_up(int server, const char *key, const char *cert)
{
	wolfSSL_Init();
	ctx = wolfSSL_CTX_new(server ? wolfTLS_server_method() : wolfTLS_client_method());
	wolfSSL_CTX_set_verify(ctx, SSL_VERIFY_NONE, NULL);
	if (server &&
	    (wolfSSL_CTX_use_certificate_file(ctx, cert, SSL_FILETYPE_PEM) != SSL_SUCCESS ||
	     wolfSSL_CTX_use_PrivateKey_file(ctx, key, SSL_FILETYPE_PEM) != SSL_SUCCESS))
		exit(2);
}

static int begin(struct tls *t, int fd, int server)
{
	t->ssl = wolfSSL_new(ctx);
	wolfSSL_set_fd(t->ssl, fd);
	return (server ? wolfSSL_accept(t->ssl) : wolfSSL_connect(t->ssl)) == SSL_SUCCESS;
}

static int get_some(struct tls *t, char *to, int n)
{
	return wolfSSL_read(t->ssl, to, n);
}

static int put(struct tls *t, const char *from, int n)
{
	return wolfSSL_write(t->ssl, from, n);
}

static void end(struct tls *t)
{
	wolfSSL_shutdown(t->ssl);
	wolfSSL_free(t->ssl);
}
#endif

/* Until what ends so has come; 0: the connection has ended. */
static int until(struct tls *t, const char *what)
{
	char buf[4096];
	int n = 0, r;

	while (n < (int)sizeof(buf) - 1 &&
	       (r = get_some(t, buf + n, (int)sizeof(buf) - 1 - n)) > 0) {
		n += r;
		buf[n] = 0;
		if (n >= (int)strlen(what) && strcmp(buf + n - strlen(what), what) == 0)
			return 1;
	}
	return 0;
}

static int get(struct sockaddr_in *at, int count, const char *prefix)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	char text[256];
	struct tls t;

	if (connect(fd, (struct sockaddr *)at, sizeof(*at)) || !begin(&t, fd, 0))
		return 1;
	for (int i = 0; i < count; i++) {
		int n = snprintf(text, sizeof(text),
				 "GET /%s%d HTTP/1.1\r\nHost: localhost\r\n\r\n", prefix, i);

		if (put(&t, text, n) != n || !until(&t, "hello\n"))
			return 1;
	}
	end(&t);
	return 0;
}

static int serve(struct sockaddr_in *at)
{
	static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello\n";
	int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1, conn;
	struct tls t;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)at, sizeof(*at)) || listen(fd, 16))
		return 1;
	puts("serves");
	fflush(stdout);
	while ((conn = accept(fd, NULL, NULL)) >= 0) {
		if (begin(&t, conn, 1)) {
			while (until(&t, "\r\n\r\n") && put(&t, answer, sizeof(answer) - 1) > 0)
				continue;
		}
		end(&t);
		close(conn);
	}
	return 1;
}

int main(int argc, char **argv)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

	if (argc < 5)
		return 2;
	signal(SIGPIPE, SIG_IGN);
	at.sin_port = htons((unsigned short)atoi(argv[2]));
	set_up(strcmp(argv[1], "serve") == 0, argv[3], argv[4]);
	return strcmp(argv[1], "serve") == 0 ? serve(&at) : get(&at, atoi(argv[3]), argv[4]);
}
