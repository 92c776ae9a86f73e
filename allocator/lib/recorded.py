"""SHA-256 of each recorded trace, so that results belong to the trace."""

SHA256: dict[str, str] = {
    "transformer_training": "b22d9ff6d794753a3cab3220ea9f70ce648a855bcdb6546fe6146b70442e8085",
    "transformer_inference": "e22c6f0dab47a6c9099f094e872a045a10bb3141e608f8c669915e6267bd1e68",
    "cnn_training": "8518f72cc58ea3a9d160b08e063db1a322e8da97ce118a5574f31b01828448e5",
    "cnn_inference": "f53ec3ed6644385bc43724f04e25d76e6c96bd8a8bbc9ea9307425f4b5b95752",
}
