# Certificates in $PKI, for scripts that have sourced e2e/lib.sh.

# authority NAME: makes a certificate authority.
authority() {
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj "/CN=$1" \
        -keyout "$PKI/$1.key" -out "$PKI/$1.pem" 2>>"$WORK/openssl.log"
}

# certificate PATH AUTHORITY SUBJECT EXTENSIONS [ARGUMENT...]: a certificate with its key.
certificate() {
    local path=$1 by=$2 subject=$3 extensions=$4
    shift 4
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "$subject" \
        -keyout "$path.key" -out "$path.csr" 2>>"$WORK/openssl.log"
    openssl x509 -req -in "$path.csr" -CA "$PKI/$by.pem" -CAkey "$PKI/$by.key" -out "$path.pem" \
        -set_serial "0x$(openssl rand -hex 8)" -extfile <(echo "$extensions") "$@" 2>>"$WORK/openssl.log"
    rm "$path.csr"
}
