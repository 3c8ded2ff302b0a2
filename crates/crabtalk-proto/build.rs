//! Compiles the schema without `protoc`, so that a fresh machine can build.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=proto/crabtalk.proto");
    let descriptors = protox::compile(["proto/crabtalk.proto"], ["proto"])?;
    prost_build::Config::new()
        // Extensions pass through; no copy is needed to hold them.
        .bytes(["."])
        .btree_map(["."])
        .compile_fds(descriptors)?;
    Ok(())
}
